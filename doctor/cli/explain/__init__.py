"""`doctor explain` and `doctor logs`.

options      as they are typed
words        whose page a name, a code or a message means
page         the page of a check or a remedy
symptom_page the page of a message
"""
