"""`doctor explain` and `doctor logs`.

options      the two commands and their options
words        finds the page for a name, a code or a message
page         the page of a check or a remedy
symptom_page the page of a symptom
"""
