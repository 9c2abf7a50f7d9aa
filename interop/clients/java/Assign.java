// Kafka's own assignors, for cases that come in and whose answers go out as text:
//
//   CASE org.apache.kafka.clients.consumer.RangeAssignor
//   TOPIC name racks racks …        a word per partition: the racks of its replicas with commas, or -
//   MEMBER id instance|- hex        hex: its subscription
//   END
//
// The answer has a line `id hex` for each member, with its assignment, and ends with END.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

public class Assign {
    private static final HexFormat HEX = HexFormat.of();
    private static final Map<String, Node> NODES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        String assignor = null;
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "CASE" -> assignor = words[1];
                case "TOPIC" -> addPartitions(words, partitions);
                case "MEMBER" -> subscriptions.put(words[1], subscription(words));
                default -> {
                    answer(assignor, partitions, subscriptions);
                    partitions = new ArrayList<>();
                    subscriptions = new HashMap<>();
                }
            }
        }
        System.out.flush();
    }

    private static void addPartitions(String[] words, List<PartitionInfo> partitions) {
        for (int index = 2; index < words.length; index++) {
            List<Node> replicas = new ArrayList<>();
            for (String rack : words[index].split(",")) {
                replicas.add(NODES.computeIfAbsent(
                    rack, name -> new Node(NODES.size(), "host", 9092, name.equals("-") ? null : name)));
            }
            Node[] nodes = replicas.toArray(new Node[0]);
            partitions.add(new PartitionInfo(words[1], index - 2, nodes[0], nodes, nodes));
        }
    }

    private static Subscription subscription(String[] words) {
        Subscription found = ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(HEX.parseHex(words[3])));
        found.setGroupInstanceId(words[2].equals("-") ? Optional.empty() : Optional.of(words[2]));
        return found;
    }

    private static void answer(
            String assignor, List<PartitionInfo> partitions, Map<String, Subscription> subscriptions) throws Exception {
        ConsumerPartitionAssignor made =
            (ConsumerPartitionAssignor) Class.forName(assignor).getDeclaredConstructor().newInstance();
        Cluster cluster = new Cluster("cluster", NODES.values(), partitions, Set.of(), Set.of());
        StringBuilder told = new StringBuilder();
        for (Map.Entry<String, Assignment> each :
                made.assign(cluster, new GroupSubscription(subscriptions)).groupAssignment().entrySet()) {
            ByteBuffer bytes = ConsumerProtocol.serializeAssignment(each.getValue());
            byte[] copy = new byte[bytes.remaining()];
            bytes.get(copy);
            told.append(each.getKey()).append(' ').append(HEX.formatHex(copy)).append('\n');
        }
        System.out.print(told.append("END\n"));
    }
}
