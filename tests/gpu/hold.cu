// Holds MIB of GPU memory, rewrites every word again and again and checks that each is what it was; prints
// one line a round: the round, how many words were wrong so far.
//   hold MIB
#include <unistd.h>

#include "tests/gpu/jobs/job.cuh"

namespace {

__device__ Word Expected(std::size_t i, Word round) { return i * 0x9E3779B97F4A7C15ull + round; }

__global__ void FillExpected(Words words) {
  for (std::size_t i = FirstIndex(); i < words.n; i += Stride()) words.at[i] = Expected(i, 0);
}

__global__ void CheckAndStep(Words words, Word round, Word* wrong) {
  for (std::size_t i = FirstIndex(); i < words.n; i += Stride()) {
    if (words.at[i] != Expected(i, round)) atomicAdd(wrong, Word{1});
    words.at[i] = Expected(i, round + 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Words words{nullptr, (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) * kWordsPerMib};
  Word* wrong = nullptr;
  CHECK(cudaMalloc(&words.at, words.bytes()));
  CHECK(cudaMalloc(&wrong, sizeof(Word)));
  CHECK(cudaMemset(wrong, 0, sizeof(Word)));
  FillExpected<<<kBlocks, kThreads>>>(words);
  CHECK(cudaGetLastError());
  for (Word round = 0;; ++round) {
    CheckAndStep<<<kBlocks, kThreads>>>(words, round, wrong);
    CHECK(cudaGetLastError());
    Word count = 0;
    CHECK(cudaMemcpy(&count, wrong, sizeof(Word), cudaMemcpyDeviceToHost));
    std::printf("%llu wrong %llu\n", round, count);
    std::fflush(stdout);
    usleep(20000);
  }
}
