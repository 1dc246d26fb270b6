# KurrentDB, in insecure mode. There is no native way to it: no package registry has it.

names=(kurrentdb)
contained=(kurrentdb)

layout() { node 1 client=2113; }

urls() { echo "kurrentdb kurrentdb://$(hosts)"; }
