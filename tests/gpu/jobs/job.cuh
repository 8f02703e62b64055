// What the test jobs share: how they check CUDA's calls, the integer arithmetic that makes their state, and
// the lines that they print. A job's state after step N is a function of its options, bit for bit, so a job
// that was taken off its GPU and put back prints what one prints that was left alone.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

// Ends the program with the call and its line unless the call succeeded.
#define CHECK(call) CheckCall((call), #call, __FILE__, __LINE__)

inline void CheckCall(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  const char* const slash = std::strrchr(file, '/');
  std::fprintf(stderr, "%s:%d: %s: %s: %s\n", slash == nullptr ? file : slash + 1, line, call,
               cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

using Word = unsigned long long;
constexpr std::size_t kWordsPerMib = (std::size_t{1} << 20) / sizeof(Word);

// Some words in a row, in any memory. A view: it does not free them.
struct Words {
  Word* at = nullptr;
  std::size_t n = 0;

  __host__ __device__ std::size_t bytes() const { return n * sizeof(Word); }
};

// SplitMix64: one to one, and every bit of the result depends on all of `word`.
__host__ __device__ inline Word Mix(Word word) {
  word += 0x9E3779B97F4A7C15ull;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
  return word ^ (word >> 31);
}

// The word at place `i` after the one that is there: a word that was ever wrong stays wrong.
__host__ __device__ inline Word NextWord(Word word, std::size_t i, Word round) {
  return Mix(word ^ Mix(i + round));
}

__device__ inline std::size_t FirstIndex() { return blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; }
__device__ inline std::size_t Stride() { return gridDim.x * std::size_t{blockDim.x}; }

__device__ inline void RewriteWords(Words words, Word round, int passes) {
  for (std::size_t i = FirstIndex(); i < words.n; i += Stride()) {
    Word word = words.at[i];
    for (int pass = 0; pass < passes; ++pass) word = NextWord(word, i, round);
    words.at[i] = word;
  }
}

static __global__ void FillKernel(Words words, Word seed) {
  for (std::size_t i = FirstIndex(); i < words.n; i += Stride()) words.at[i] = NextWord(seed, i, 0);
}

static __global__ void RewriteKernel(Words words, Word round, int passes) {
  RewriteWords(words, round, passes);
}

static __global__ void BlendKernel(Words to, Words own, Words other) {
  for (std::size_t i = FirstIndex(); i < to.n; i += Stride()) {
    to.at[i] = Mix(own.at[i] + Mix(other.at[(i + 1) % to.n]));
  }
}

constexpr int kBlocks = 1024, kThreads = 256;

// What was there before is forgotten.
inline cudaError_t Fill(Words words, Word seed, cudaStream_t stream = nullptr) {
  FillKernel<<<kBlocks, kThreads, 0, stream>>>(words, seed);
  return cudaGetLastError();
}

// Every word changes, `passes` times, into one that follows from it, its place and `round`.
inline cudaError_t Rewrite(Words words, Word round, int passes, cudaStream_t stream = nullptr) {
  RewriteKernel<<<kBlocks, kThreads, 0, stream>>>(words, round, passes);
  return cudaGetLastError();
}

// `to` is made of both others. All are as long as each other; `to` may be `own` but not `other`.
inline cudaError_t Blend(Words to, Words own, Words other, cudaStream_t stream = nullptr) {
  BlendKernel<<<kBlocks, kThreads, 0, stream>>>(to, own, other);
  return cudaGetLastError();
}

// A digest of words in the order in which they were added. It finds accidents, not forgeries.
class Digest {
 public:
  void Add(Word word) { value_ = Mix(value_ + word); }
  void Add(Words host) {
    for (std::size_t i = 0; i < host.n; ++i) Add(host.at[i]);
  }
  // Words of the device, which are copied to the host a part at a time.
  void AddDevice(Words device) {
    std::vector<Word> part(std::min(device.n, kWordsPerMib));
    for (std::size_t done = 0; done < device.n; done += part.size()) {
      part.resize(std::min(part.size(), device.n - done));
      CHECK(cudaMemcpy(part.data(), device.at + done, part.size() * sizeof(Word), cudaMemcpyDeviceToHost));
      Add({part.data(), part.size()});
    }
  }
  Word value() const { return value_; }

 private:
  Word value_ = 0;
};

// One line at the end of each step; `seen` is what the job knows of its state by then.
inline void ReportStep(int step, int steps, Word seen) {
  std::printf("step %d of %d %016llx\n", step, steps, seen);
  std::fflush(stdout);
}

inline void ReportDigest(const Digest& digest) {
  std::printf("digest %016llx\n", digest.value());
  std::fflush(stdout);
}

// Between steps, so that a number of steps is a length of time.
inline void Pause(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
