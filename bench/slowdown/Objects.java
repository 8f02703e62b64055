import java.io.FileWriter;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Makes and drops objects in a heap of 256 MiB. Argument: where to note what it has done, as lines of time and objects. */
public class Objects {
  public static void main(String[] args) throws IOException {
    Random random = new Random(1);
    Map<Integer, byte[]> kept = new HashMap<>();
    try (FileWriter notes = new FileWriter(args[0])) {
      long done = 0, noted = 0;
      while (true) {
        for (int i = 0; i < 1000; ++i) {
          kept.put(random.nextInt(20000), new byte[1000 + random.nextInt(8000)]);
          ++done;
        }
        long now = System.currentTimeMillis();
        if (now - noted < 100) continue;
        noted = now;
        notes.write(now / 1000.0 + " " + done + "\n");
        notes.flush();
      }
    }
  }
}
