// Kernels that run for seconds: the driver's lock waits for them, so this is the job that does not come off
// its GPU at once. Each kernel takes its words into registers, holds them there for the time and writes what
// follows from them.
#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

// Few enough to run all at once on any GPU: blocks that wait for others would have their time after those.
constexpr int kHeldBlocks = 16;

__device__ Word Nanoseconds() {
  Word now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__global__ void Hold(Words words, Word round, Word nanoseconds) {
  const std::size_t i = FirstIndex();
  const Word word = NextWord(words.at[i], i, round);
  const Word begun = Nanoseconds();
  while (Nanoseconds() - begun < nanoseconds) __nanosleep(100'000);
  words.at[i] = NextWord(word, i, round);
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 3, seconds = 10;
  ParseOptions(argc, argv,
               {{"steps", &steps, 0, "kernels to run, one after another"},
                {"seconds", &seconds, 0, "how long each runs"}});
  Words words{nullptr, std::size_t{kHeldBlocks} * kThreads};
  CHECK(cudaMalloc(&words.at, words.bytes()));
  CHECK(Fill(words, 0));
  CHECK(cudaDeviceSynchronize());
  Digest digest;
  for (int step = 1; step <= steps; ++step) {
    Hold<<<kHeldBlocks, kThreads>>>(words, step, Word(seconds) * 1'000'000'000);
    CHECK(cudaGetLastError());
    std::printf("launched %d of %d\n", step, steps);
    std::fflush(stdout);
    digest.AddDevice(words);
    ReportStep(step, steps, digest.value());
  }
  CHECK(cudaFree(words.at));
  ReportDigest(digest);
  return 0;
}
