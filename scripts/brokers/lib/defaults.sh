# What a brokers/<name>.sh may leave out. It is read again for every broker, so that none inherits from another.

names=()     # the names that the file answers to
nodes=()     # filled by layout, in the order in which they are started
ports=()     # "node role port", filled by layout
contained=() # those of the names that come as containers only: there is no native way to them
source=''    # how it is got natively, in a few words

layout() { :; }    # calls node for every node of $name
missing() { :; }   # prints what this machine lacks for a native start; nothing if it can be started
install() { :; }   # downloads what is not in $cache yet
configure() { :; } # writes the configuration of node $1 into $dir, once, on its first start
start() { :; }     # starts node $1 by spawn
healthy() { :; }   # succeeds when node $1 answers its own protocol
form() { :; }      # joins the nodes, once, when all of them are healthy for the first time
formed() { :; }    # succeeds when all nodes know of one another
programs() { :; }  # prints the folder of its programs, of which PATH or $cache/$name/usr/bin does not tell
urls() { :; }      # prints "driver url" lines, the most natural one first
outside() { :; }   # prints the process groups of a node, whose first process is $1, that are not its own
also() { :; }      # prints further "name url" lines, which env shows
