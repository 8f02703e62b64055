// Work that is under way in many places at once: lanes, each a stream with copies from and to pinned host
// memory, which wait for their neighbours' events; memory from pools; and a graph that is launched again and
// again. A step waits for all that it submitted, takes what came to the host and makes the next step's input
// of it. The digest is the same with and without --graph and --pools: they change how the work is done, not
// what.
#include <cstdint>

#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

constexpr int kLanes = 4, kPasses = 8;

Words NewPinned(std::size_t n) {
  Words words{nullptr, n};
  CHECK(cudaMallocHost(&words.at, words.bytes()));
  return words;
}

// Where device memory comes from: a pool of our own for what lasts, the device's default pool for what does
// not; or cudaMalloc for both.
class Memory {
 public:
  explicit Memory(bool pools) {
    if (!pools) return;
    cudaMemPoolProps props{};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    CHECK(cudaMemPoolCreate(&own_, &props));
    cudaMemPool_t standard = nullptr;
    CHECK(cudaDeviceGetDefaultMemPool(&standard, 0));
    // Freed memory stays in the pool: it is there while the process is off the GPU.
    std::uint64_t kept = UINT64_MAX;
    CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &kept));
  }

  Words NewLasting(std::size_t n, cudaStream_t stream) const {
    Words words{nullptr, n};
    CHECK(own_ == nullptr ? cudaMalloc(&words.at, words.bytes())
                          : cudaMallocFromPoolAsync(&words.at, words.bytes(), own_, stream));
    return words;
  }

  Words NewScratch(std::size_t n, cudaStream_t stream) const {
    Words words{nullptr, n};
    CHECK(own_ == nullptr ? cudaMalloc(&words.at, words.bytes())
                          : cudaMallocAsync(&words.at, words.bytes(), stream));
    return words;
  }

  void Free(Words words, cudaStream_t stream) const {
    CHECK(own_ == nullptr ? cudaFree(words.at) : cudaFreeAsync(words.at, stream));
  }

  void Close() const {
    if (own_ != nullptr) CHECK(cudaMemPoolDestroy(own_));
  }

 private:
  cudaMemPool_t own_ = nullptr;
};

// Two states by turns: a round reads the one and writes the other, so that neighbours may read the old one
// meanwhile.
struct Lane {
  cudaStream_t stream = nullptr;
  cudaEvent_t done[2] = {};  // the last round that wrote state[0], state[1]
  Words state[2];
  Words in, out;  // pinned

  Lane(const Memory& memory, std::size_t n, Word seed) : in(NewPinned(n)), out(NewPinned(n)) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int turn = 0; turn < 2; ++turn) {
      CHECK(cudaEventCreateWithFlags(&done[turn], cudaEventDisableTiming));
      state[turn] = memory.NewLasting(n, stream);
      CHECK(Fill(state[turn], seed, stream));
      CHECK(cudaEventRecord(done[turn], stream));
    }
    CHECK(cudaStreamSynchronize(stream));
    for (std::size_t i = 0; i < n; ++i) in.at[i] = Mix(seed + i);
  }

  void Close(const Memory& memory) {
    for (int turn = 0; turn < 2; ++turn) {
      memory.Free(state[turn], stream);
      CHECK(cudaEventDestroy(done[turn]));
    }
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(in.at));
    CHECK(cudaFreeHost(out.at));
  }
};

// One lane's part of a round. The left neighbour must have written the state that is read here, the right one
// must have read the state that is overwritten here; both did so in the round before.
void SubmitRound(const Memory& memory, Lane& lane, const Lane& left, const Lane& right, Word round) {
  const int from = round % 2, to = 1 - from;
  CHECK(cudaStreamWaitEvent(lane.stream, left.done[from], 0));
  CHECK(cudaStreamWaitEvent(lane.stream, right.done[from], 0));
  const Words received = memory.NewScratch(lane.in.n, lane.stream);
  CHECK(cudaMemcpyAsync(received.at, lane.in.at, received.bytes(), cudaMemcpyHostToDevice, lane.stream));
  CHECK(Blend(lane.state[to], lane.state[from], left.state[from], lane.stream));
  CHECK(Blend(lane.state[to], lane.state[to], received, lane.stream));
  CHECK(Rewrite(lane.state[to], round, kPasses, lane.stream));
  memory.Free(received, lane.stream);
  CHECK(cudaEventRecord(lane.done[to], lane.stream));
  CHECK(
      cudaMemcpyAsync(lane.out.at, lane.state[to].at, lane.out.bytes(), cudaMemcpyDeviceToHost, lane.stream));
}

// Two streams that part and meet again, as a graph or submitted again each time.
class Fork {
 public:
  Fork(const Memory& memory, std::size_t n, bool graph) : head_(NewPinned(1)) {
    CHECK(cudaStreamCreateWithFlags(&main_, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&parted_, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&met_, cudaEventDisableTiming));
    all_ = memory.NewLasting(2 * n, main_);
    CHECK(Fill(all_, kLanes, main_));
    CHECK(cudaStreamSynchronize(main_));
    if (!graph) return;
    cudaGraph_t captured = nullptr;
    CHECK(cudaStreamBeginCapture(main_, cudaStreamCaptureModeThreadLocal));
    SubmitOnce();
    CHECK(cudaStreamEndCapture(main_, &captured));
    CHECK(cudaGraphInstantiate(&graph_, captured, 0));
    CHECK(cudaGraphDestroy(captured));
  }

  void Submit() {
    if (graph_ == nullptr) {
      SubmitOnce();
    } else {
      CHECK(cudaGraphLaunch(graph_, main_));
    }
  }

  Word WaitForHead() {
    CHECK(cudaStreamSynchronize(main_));
    return *head_.at;
  }

  void AddTo(Digest& digest) const { digest.AddDevice(all_); }

  void Close(const Memory& memory) {
    if (graph_ != nullptr) CHECK(cudaGraphExecDestroy(graph_));
    memory.Free(all_, main_);
    CHECK(cudaStreamSynchronize(main_));
    CHECK(cudaEventDestroy(parted_));
    CHECK(cudaEventDestroy(met_));
    CHECK(cudaStreamDestroy(side_));
    CHECK(cudaStreamDestroy(main_));
    CHECK(cudaFreeHost(head_.at));
  }

 private:
  void SubmitOnce() {
    const std::size_t half = all_.n / 2;
    CHECK(cudaEventRecord(parted_, main_));
    CHECK(cudaStreamWaitEvent(side_, parted_, 0));
    CHECK(Rewrite({all_.at, half}, 1, kPasses, main_));
    CHECK(Rewrite({all_.at + half, half}, 2, kPasses, side_));
    CHECK(cudaEventRecord(met_, side_));
    CHECK(cudaStreamWaitEvent(main_, met_, 0));
    CHECK(Blend({all_.at, half}, {all_.at, half}, {all_.at + half, half}, main_));
    CHECK(cudaMemcpyAsync(head_.at, all_.at, sizeof(Word), cudaMemcpyDeviceToHost, main_));
  }

  Words head_;  // pinned
  Words all_;
  cudaStream_t main_ = nullptr, side_ = nullptr;
  cudaEvent_t parted_ = nullptr, met_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  int steps = 100, mib = 64, rounds = 16, pause_ms = 0, graph = 1, pools = 1;
  ParseOptions(argc, argv,
               {{"steps", &steps, 0, "steps to take"},
                {"mib", &mib, 1, "MiB of device memory, and half as much of pinned host memory"},
                {"rounds", &rounds, 1, "rounds of each lane, and launches of the graph, in a step"},
                {"pause-ms", &pause_ms, 0, "milliseconds between steps"},
                {"graph", &graph, 0, "0: without a graph"},
                {"pools", &pools, 0, "0: without memory pools"}});
  // Each lane has two states and what it received, and the fork as much as two states.
  const std::size_t n = mib * kWordsPerMib / (3 * kLanes + 2);
  const Memory memory(pools != 0);
  std::vector<Lane> lanes;
  for (int i = 0; i < kLanes; ++i) lanes.emplace_back(memory, n, i);
  Fork fork(memory, n, graph != 0);
  Digest digest;
  Word round = 0;
  for (int step = 1; step <= steps; ++step) {
    for (const Word end = round + rounds; round < end; ++round) {
      for (int i = 0; i < kLanes; ++i) {
        SubmitRound(memory, lanes[i], lanes[(i + kLanes - 1) % kLanes], lanes[(i + 1) % kLanes], round);
      }
      fork.Submit();
    }
    for (Lane& lane : lanes) {
      CHECK(cudaStreamSynchronize(lane.stream));
      for (std::size_t i = 0; i < n; ++i) lane.in.at[i] = NextWord(lane.out.at[i], i, step);
      digest.Add(lane.in.at[n / 2]);
    }
    digest.Add(fork.WaitForHead());
    ReportStep(step, steps, digest.value());
    Pause(pause_ms);
  }
  for (Lane& lane : lanes) {
    digest.AddDevice(lane.state[0]);
    digest.AddDevice(lane.state[1]);
    digest.Add(lane.in);
    lane.Close(memory);
  }
  fork.AddTo(digest);
  fork.Close(memory);
  memory.Close();
  ReportDigest(digest);
  return 0;
}
