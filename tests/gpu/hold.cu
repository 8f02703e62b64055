// Holds MIB of GPU memory, rewrites every word again and again and checks that each is what it was; prints one line
// a round: the round, how many words were wrong so far.
//   hold MIB
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)                                                                     \
  do {                                                                                  \
    if (cudaError_t error = (call); error != cudaSuccess) {                             \
      std::fprintf(stderr, "hold: line %d: %s\n", __LINE__, cudaGetErrorString(error)); \
      return 1;                                                                         \
    }                                                                                   \
  } while (0)

using Word = unsigned long long;

__device__ Word Expected(size_t i, Word round) { return i * 0x9E3779B97F4A7C15ull + round; }

__global__ void Fill(Word* words, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * size_t{blockDim.x})
    words[i] = Expected(i, 0);
}

__global__ void CheckAndStep(Word* words, size_t n, Word round, Word* wrong) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += gridDim.x * size_t{blockDim.x}) {
    if (words[i] != Expected(i, round)) atomicAdd(wrong, Word{1});
    words[i] = Expected(i, round + 1);
  }
}

int main(int argc, char** argv) {
  const size_t n = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64) * (size_t{1} << 20) / sizeof(Word);
  Word *words = nullptr, *wrong = nullptr;
  CHECK(cudaMalloc(&words, n * sizeof(Word)));
  CHECK(cudaMalloc(&wrong, sizeof(Word)));
  CHECK(cudaMemset(wrong, 0, sizeof(Word)));
  Fill<<<1024, 256>>>(words, n);
  for (Word round = 0;; ++round) {
    CheckAndStep<<<1024, 256>>>(words, n, round, wrong);
    Word count = 0;
    CHECK(cudaMemcpy(&count, wrong, sizeof(Word), cudaMemcpyDeviceToHost));
    std::printf("%llu wrong %llu\n", round, count);
    std::fflush(stdout);
    usleep(20000);
  }
}
