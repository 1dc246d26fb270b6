import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.AbstractCursor;
import de.bwaldvogel.mongo.backend.Cursor;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.aggregation.Aggregation;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.Oplog;
import de.bwaldvogel.mongo.wire.MongoDatabaseHandler;
import de.bwaldvogel.mongo.wire.MongoExceptionHandler;
import de.bwaldvogel.mongo.wire.MongoWireMessageEncoder;
import de.bwaldvogel.mongo.wire.MongoWireProtocolHandler;
import de.bwaldvogel.mongo.wire.MongoWireReplyEncoder;
import de.bwaldvogel.mongo.wire.message.ClientRequest;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

// Standin runs mongo-java-server, a stand-in where there is no MongoDB: it is not MongoDB, keeps everything in memory, and has no indexes, write concerns,
// users or sessions. It listens on a port of loopback, the first argument.
//
// What is added to it: a higher version of the protocol, as the client library wants one; the command hello; and, where the second argument is replicaSet, what
// a replica set of one member says of itself, and change streams that wait for changes.
public class Standin extends MemoryBackend {
    private final String address;
    private final boolean replicaSet;

    Standin(String address, boolean replicaSet) {
        this.address = address;
        this.replicaSet = replicaSet;
        if (replicaSet) oplog = new Changes(getCursorRegistry());
        version(new MongoVersion() {
            @Override
            public List<Integer> getVersionArray() { return List.of(5, 0, 0); }

            @Override
            public int getWireVersion() { return 13; }
        });
    }

    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
        if (!command.equals("hello") && !command.equalsIgnoreCase("isMaster")) return super.handleCommand(channel, database, command, query);
        Document hello = super.handleCommand(channel, database, "isMaster", query);
        hello.put("isWritablePrimary", true);
        if (replicaSet) {
            hello.putAll(new Document("setName", "standin").append("setVersion", 1).append("secondary", false).append("hosts", List.of(address))
                .append("primary", address).append("me", address));
        }
        return hello;
    }

    // A change stream that has nothing new waits, as MongoDB's does.
    @Override
    protected Document handleGetMore(String database, String command, Document query) {
        Cursor cursor = getCursorRegistry().getCursor(((Number) query.get(command)).longValue());
        if (!(cursor instanceof ChangeStream)) return super.handleGetMore(database, command, query);
        ChangeStream stream = (ChangeStream) cursor;
        stream.await(((Number) query.getOrDefault("maxTimeMS", 1000)).longValue());
        Document answer = super.handleGetMore(database, command, query);
        ((Document) answer.get("cursor")).put("postBatchResumeToken", stream.token());
        return answer;
    }

    public static void main(String[] arguments) throws InterruptedException {
        int port = Integer.parseInt(arguments[0]);
        String address = "127.0.0.1:" + port;
        Standin backend = new Standin(address, arguments[1].equals("replicaSet"));
        ChannelGroup clients = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
        // Each command that is under way has a thread. Those of mongo-java-server's own server are shared by connections, and there one that waits for changes
        // would hold up others.
        Executor threads = Executors.newCachedThreadPool();
        new ServerBootstrap().group(new MultiThreadIoEventLoopGroup(2, NioIoHandler.newFactory())).channel(NioServerSocketChannel.class)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childHandler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel client) {
                    client.pipeline().addLast(new MongoWireReplyEncoder(), new MongoWireMessageEncoder(), new MongoWireProtocolHandler(),
                        new MongoDatabaseHandler(backend, clients) {
                            @Override
                            protected void channelRead0(ChannelHandlerContext context, ClientRequest request) {
                                threads.execute(() -> {
                                    try {
                                        super.channelRead0(context, request);
                                    } catch (RuntimeException e) {
                                        context.fireExceptionCaught(e);
                                    }
                                });
                            }
                        }, new MongoExceptionHandler());
                }
            }).bind("127.0.0.1", port).sync();
        System.out.println("listening on " + address);
    }
}

// Changes has a log of each collection that somebody watches. Leases are in none: mongo-java-server tells nobody of findAndModify.
class Changes implements Oplog {
    private final CursorRegistry cursors;
    private final ConcurrentMap<String, Log> logs = new ConcurrentHashMap<>();
    private final AtomicInteger made = new AtomicInteger();

    Changes(CursorRegistry cursors) { this.cursors = cursors; }

    @Override
    public void handleInsert(String namespace, List<Document> documents) {
        add(namespace, documents.stream().map(document -> event("insert", document.get("_id"))));
    }

    @Override
    public void handleUpdate(String namespace, Document selector, Document update, List<Object> ids) {
        String type = update.keySet().stream().allMatch(name -> name.startsWith("$")) ? "update" : "replace";
        Document removed = (Document) update.getOrDefault("$unset", new Document());
        Document description = new Document("removedFields", new ArrayList<>(removed.keySet()));
        add(namespace, ids.stream().map(id -> event(type, id).append("updateDescription", description)));
    }

    @Override
    public void handleDelete(String namespace, Document selector, List<Object> ids) {
        add(namespace, ids.stream().map(id -> event("delete", id)));
    }

    @Override
    public void handleDropCollection(String namespace) {
        Log log = logs.remove(namespace);
        if (log != null) log.drop();
    }

    @Override
    public Cursor createCursor(Document options, String namespace, Aggregation pipeline) {
        Log log = logs.computeIfAbsent(namespace, any -> new Log(made.incrementAndGet()));
        Document token = (Document) options.getOrDefault("resumeAfter", options.get("startAfter"));
        ChangeStream stream = new ChangeStream(cursors.generateCursorId(), log, pipeline, token);
        cursors.add(stream);
        return stream;
    }

    private void add(String namespace, Stream<Document> events) {
        Log log = logs.get(namespace);
        if (log != null) log.add(events);
    }

    private static Document event(String type, Object id) {
        return new Document("operationType", type).append("documentKey", new Document("_id", id));
    }
}

// Log is what happened to a collection since it was first watched. A place in it is how many events are before.
class Log {
    private final int number;
    final List<Document> events = new ArrayList<>();
    boolean dropped;

    Log(int number) { this.number = number; }

    synchronized void add(Stream<Document> some) {
        some.forEach(event -> events.add(event.append("_id", token(events.size() + 1))));
        notifyAll();
    }

    synchronized void drop() {
        dropped = true;
        notifyAll();
    }

    Document token(int place) { return new Document("_data", String.format("%08x%08x", number, place)); }

    // place is that of a token, and without one it is the end.
    synchronized int place(Document token) {
        if (token == null) return events.size();
        long data = Long.parseLong((String) token.get("_data"), 16);
        if (data >> 32 != number || (int) data > events.size()) throw new MongoServerError(286, "ChangeStreamHistoryLost", "the collection was dropped since");
        return (int) data;
    }
}

// ChangeStream reads a log, and ends when the collection is dropped.
class ChangeStream extends AbstractCursor {
    private final Log log;
    private final Aggregation pipeline;
    private final List<Document> waiting = new ArrayList<>();
    private int place;
    private boolean over;

    ChangeStream(long id, Log log, Aggregation pipeline, Document token) {
        super(id);
        this.log = log;
        this.pipeline = pipeline;
        place = log.place(token);
    }

    void await(long millis) {
        long until = System.nanoTime() + millis * 1_000_000;
        synchronized (log) {
            try {
                for (long left; !read() && (left = until - System.nanoTime()) > 0;) log.wait(1 + left / 1_000_000);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private boolean read() {
        waiting.addAll(pipeline.runStages(log.events.subList(place, log.events.size()).stream().map(Document::cloneDeeply)));
        place = log.events.size();
        if (log.dropped && !over) {
            over = true;
            waiting.add(new Document("_id", token()).append("operationType", "invalidate"));
        }
        return !waiting.isEmpty();
    }

    Document token() { return log.token(place); }

    @Override
    public boolean isEmpty() { return over && waiting.isEmpty(); }

    // It gives all that there is: no client here limits a batch.
    @Override
    public List<Document> takeDocuments(int ignored) {
        synchronized (log) {
            read();
            List<Document> all = new ArrayList<>(waiting);
            waiting.clear();
            return all;
        }
    }
}
