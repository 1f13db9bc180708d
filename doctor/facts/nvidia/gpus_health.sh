for i in 1 2 3 4 5 6 7 8 9 10; do
  q all --query-gpu=$f --format=csv
  case $o in *'Field "'*'" is not a valid field'*) ;; *) break;; esac
  b=${o#*'Field "'}; b=${b%%'"'*}; f=,$f,
  case $f in *,"$b",*) ;; *) break;; esac
  f=${f%%,"$b",*},${f#*,"$b",}; f=${f#,}; f=${f%,}
done
