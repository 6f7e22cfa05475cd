module example.com/adrel

go 1.19
