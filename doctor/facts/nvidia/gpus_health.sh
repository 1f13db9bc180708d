for i in 1 2 3 4 5 6 7 8 9 10; do
  q all --query-gpu=$f --format=csv
  case $o in *'Field "'*'" is not a valid field'*) ;; *) break;; esac
  b=${o#*'Field "'}; b=${b%%'"'*}; f=,$f,
  case $f in *,"$b",*) ;; *) break;; esac
  case $b in fabric.*) f=${f%%",$b,"*};; *) f=${f%%,"$b",*},${f#*,"$b",};; esac
  f=${f#,}; f=${f%,}
done
