package tailpack.kafka;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.InflaterInputStream;
import org.apache.kafka.common.Uuid;

/**
 * Owners of partitions, as the rack id of a planner states them: {@code tailpack-plan:1:NUMBER:BASE64(zlib(BODY))}.
 *
 * <p>The body is big-endian: u16 number of owners; the key of each owner, 6 bytes; u16 number of topics; each topic's id,
 * 16 bytes, and u32 number of partitions. Then follow the owners of all partitions, as places among the owners from 1 (0:
 * no owner): first the high byte of each place, then the low byte of each. autoscaler/live/foreign/packed.py writes it.
 */
record Plan(long number, long[] owners, Map<Uuid, int[]> places) {
    static final String MARK = "tailpack-plan:";
    /** A plan of a later version, or a damaged one. It names nobody, so that everything stays where it is. */
    static final Plan UNREADABLE = new Plan(-1, new long[0], Map.of());

    private static final String PREFIX = MARK + "1:";
    private static final int MOST_PARTITIONS = 1_000_000;

    static Plan read(String rack) {
        int colon = rack.indexOf(':', PREFIX.length());
        if (!rack.startsWith(PREFIX) || colon < 0) return UNREADABLE;
        try {
            long number = Long.parseLong(rack.substring(PREFIX.length(), colon));
            byte[] packed = Base64.getDecoder().decode(rack.substring(colon + 1));
            return readBody(number, new DataInputStream(new InflaterInputStream(new ByteArrayInputStream(packed))));
        } catch (IOException | RuntimeException damaged) {
            return UNREADABLE;
        }
    }

    private static Plan readBody(long number, DataInputStream in) throws IOException {
        long[] owners = new long[in.readUnsignedShort()];
        for (int i = 0; i < owners.length; i++) owners[i] = (long) in.readUnsignedShort() << 32 | in.readInt() & 0xffffffffL;
        Uuid[] topics = new Uuid[in.readUnsignedShort()];
        int[] counts = new int[topics.length];
        long all = 0;
        for (int i = 0; i < topics.length; i++) {
            topics[i] = new Uuid(in.readLong(), in.readLong());
            counts[i] = in.readInt();
            if (counts[i] < 0 || (all += counts[i]) > MOST_PARTITIONS) throw new IOException("too many partitions");
        }
        byte[] bytes = new byte[(int) (2 * all)];
        in.readFully(bytes);
        Map<Uuid, int[]> places = new HashMap<>();
        int at = 0;
        for (int i = 0; i < topics.length; i++) {
            int[] of = new int[counts[i]];
            for (int p = 0; p < of.length; p++, at++) of[p] = (bytes[at] & 0xff) << 8 | bytes[at + (int) all] & 0xff;
            places.put(topics[i], of);
        }
        return new Plan(number, owners, places);
    }

    /** Key of the planned owner; -1 if the plan has none. */
    long owner(Uuid topic, int partition) {
        int[] of = places.get(topic);
        int place = of == null || partition >= of.length ? 0 : of[partition];
        return place == 0 || place > owners.length ? -1 : owners[place - 1];
    }

    /** Key of a member: the first 6 bytes of the SHA-256 of its instance id, or of its member id if it has none. */
    static long key(String id) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(id.getBytes(StandardCharsets.UTF_8));
            long key = 0;
            for (int i = 0; i < 6; i++) key = key << 8 | hash[i] & 0xff;
            return key;
        } catch (NoSuchAlgorithmException impossible) { // every Java has SHA-256
            throw new IllegalStateException(impossible);
        }
    }
}
