import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import java.net.InetSocketAddress;
import java.util.List;

// Standin runs mongo-java-server on a free port, which it prints, until its input ends. The tests of the driver run on it where there is no MongoDB: it is
// not MongoDB, keeps everything in memory, and has no indexes, write concerns, users or sessions.
//
// What is added to it: a higher version of the protocol, as the client library wants one; the command hello; and, with the argument replicaSet, what a
// replica set of one member says of itself, and change streams that wait for changes.
public class Standin extends MemoryBackend {
    private final boolean replicaSet;
    private String address;

    Standin(boolean replicaSet) {
        this.replicaSet = replicaSet;
        version(new MongoVersion() {
            @Override
            public List<Integer> getVersionArray() { return List.of(5, 0, 0); }

            @Override
            public int getWireVersion() { return 13; }
        });
    }

    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
        if (!command.equals("hello") && !command.equalsIgnoreCase("isMaster")) {
            try {
                return super.handleCommand(channel, database, command, query);
            } finally {
                changed(command);
            }
        }
        Document hello = super.handleCommand(channel, database, "isMaster", query);
        hello.put("isWritablePrimary", true);
        if (replicaSet) {
            hello.putAll(new Document("setName", "standin").append("setVersion", 1).append("secondary", false).append("hosts", List.of(address))
                .append("primary", address).append("me", address));
        }
        return hello;
    }

    private long changes;

    // changed wakes the change streams. When a topic is dropped the log of changes, all of which each stream reads each time, begins anew: each test has a topic.
    private synchronized void changed(String command) {
        switch (command) {
            case "drop":
                if (replicaSet) {
                    dropDatabase("local");
                    enableOplog();
                }
                // falls through
            case "insert", "update", "delete":
                changes++;
                notifyAll();
        }
    }

    private synchronized long changes() { return changes; }

    private synchronized void await(long seen, long until) {
        try {
            for (long left; changes == seen && (left = until - System.nanoTime()) > 0;) wait(1 + left / 1_000_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    // A change stream that has nothing new waits, as MongoDB's does. This holds one of the server's threads, of which there are enough.
    @Override
    protected Document handleGetMore(String database, String command, Document query) {
        Object most = query.getOrDefault("maxTimeMS", 1000);
        long until = System.nanoTime() + ((Number) most).longValue() * 1_000_000;
        for (;;) {
            long seen = changes();
            Document answer = super.handleGetMore(database, command, query);
            Document cursor = (Document) answer.get("cursor");
            boolean ended = ((Number) cursor.get("id")).longValue() == 0;
            if (ended || !((List<?>) cursor.get("nextBatch")).isEmpty() || System.nanoTime() >= until) return answer;
            await(seen, until);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Standin backend = new Standin(arguments.length > 0 && arguments[0].equals("replicaSet"));
        MongoServer server = new MongoServer(backend);
        server.bind(new InetSocketAddress("127.0.0.1", 0), 1, 256);
        backend.address = "127.0.0.1:" + server.getLocalAddress().getPort();
        if (backend.replicaSet) server.enableOplog();
        System.out.println(backend.address);
        while (System.in.read() >= 0) continue;
        server.shutdownNow();
        System.exit(0);
    }
}
