// Managed memory, which the GPU and the host rewrite by turns through the same pointer. Drivers up to 580 at
// least refuse to checkpoint it: then this job must be left running, unharmed.
#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

constexpr int kPasses = 32;
constexpr std::size_t kWordsPerPage = 4096 / sizeof(Word);

}  // namespace

int main(int argc, char** argv) {
  int steps = 100, mib = 64, pause_ms = 20;
  ParseOptions(argc, argv,
               {{"steps", &steps, 0, "steps to take"},
                {"mib", &mib, 1, "MiB of managed memory"},
                {"pause-ms", &pause_ms, 0, "milliseconds between steps"}});
  Words words{nullptr, mib * kWordsPerMib};
  CHECK(cudaMallocManaged(&words.at, words.bytes()));
  CHECK(Fill(words, 0));
  CHECK(cudaDeviceSynchronize());
  Digest digest;
  for (int step = 1; step <= steps; ++step) {
    CHECK(Rewrite(words, step, kPasses));
    CHECK(cudaDeviceSynchronize());
    // One word of every other page, so that some pages move to the host and back in each step and some stay.
    for (std::size_t i = step % kWordsPerPage; i < words.n; i += 2 * kWordsPerPage) {
      words.at[i] = NextWord(words.at[i], i, step);
      digest.Add(words.at[i]);
    }
    ReportStep(step, steps, digest.value());
    Pause(pause_ms);
  }
  digest.Add(words);
  CHECK(cudaFree(words.at));
  ReportDigest(digest);
  return 0;
}
