# MongoDB, a replica set of one. There is no native way to it: no package registry has it.

names=(mongodb)
contained=yes

layout() { node 1 client=27017; }

# The set's own address of its one member leads nowhere for whoever comes by another way.
urls() { echo "mongodb mongodb://$(hosts)/?directConnection=true"; }
