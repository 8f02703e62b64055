// Several processes with a CUDA context each, on the same GPU or on different ones, below a parent that has
// none. In each step the parent gives every child the same word, the child works it into its state and
// answers with a word of that, and what all answered makes the next step's word: none is ever more than a
// step ahead.
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "tests/gpu/jobs/job.cuh"
#include "tests/gpu/jobs/options.h"

namespace {

constexpr int kPasses = 32;

struct Work {
  int steps = 100, mib = 64, gpus = 0, pause_ms = 20;
};

// Both are whole or not at all: a word is shorter than what a pipe passes on in one piece.
bool Send(int pipe, Word word) { return write(pipe, &word, sizeof(word)) == sizeof(word); }
bool Receive(int pipe, Word* word) { return read(pipe, word, sizeof(*word)) == sizeof(*word); }

// What a child answers is a word of its state in each step, and its digest at last.
int RunChild(const Work& work, int rank, int from_parent, int to_parent) {
  int gpus = 0;
  CHECK(cudaGetDeviceCount(&gpus));
  if (work.gpus != 0) gpus = std::min(gpus, work.gpus);
  CHECK(cudaSetDevice(rank % gpus));
  Words state{nullptr, work.mib * kWordsPerMib};
  CHECK(cudaMalloc(&state.at, state.bytes()));
  CHECK(Fill(state, rank));
  Word word = 0;
  for (int step = 1; step <= work.steps; ++step) {
    if (!Receive(from_parent, &word)) return 1;
    CHECK(Rewrite(state, word, kPasses));
    CHECK(cudaMemcpy(&word, state.at + word % state.n, sizeof(word), cudaMemcpyDeviceToHost));
    if (!Send(to_parent, word)) return 1;
  }
  Digest digest;
  digest.AddDevice(state);
  CHECK(cudaFree(state.at));
  return Send(to_parent, digest.value()) ? 0 : 1;
}

class Children {
 public:
  // False, with a message, if one could not be started.
  bool Start(const Work& work, int count) {
    for (int rank = 0; rank < count; ++rank) {
      int down[2], up[2];
      if (pipe(down) != 0 || pipe(up) != 0) return Failed(std::strerror(errno));
      const pid_t pid = fork();
      if (pid < 0) return Failed(std::strerror(errno));
      if (pid == 0) {
        // The other children's ends as well, or they would not see the parent go.
        for (const Child& other : children_) close(other.to), close(other.from);
        close(down[1]), close(up[0]);
        std::exit(RunChild(work, rank, down[0], up[1]));
      }
      close(down[0]), close(up[1]);
      children_.push_back({pid, down[1], up[0]});
    }
    return true;
  }

  bool TellAll(Word word) {
    for (const Child& child : children_) {
      if (!Send(child.to, word)) return Failed("a child does not listen");
    }
    return true;
  }

  bool HearAll(Digest* digest) {
    for (const Child& child : children_) {
      Word word = 0;
      if (!Receive(child.from, &word)) return Failed("a child went without an answer");
      digest->Add(word);
    }
    return true;
  }

  // Lets go of them, so that those which still listen end, and waits for all: true if all ended well.
  bool Wait() {
    bool well = true;
    for (const Child& child : children_) close(child.to), close(child.from);
    for (std::size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (waitpid(children_[rank].pid, &status, 0) == children_[rank].pid && status == 0) continue;
      std::fprintf(stderr, "processes: child %zu ended with %s %d\n", rank,
                   WIFSIGNALED(status) ? "signal" : "status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      well = false;
    }
    return well;
  }

 private:
  struct Child {
    pid_t pid;
    int to, from;
  };

  static bool Failed(const char* what) {
    std::fprintf(stderr, "processes: %s\n", what);
    return false;
  }

  std::vector<Child> children_;
};

bool RunSteps(const Work& work, Children& children, Digest* digest) {
  for (int step = 1; step <= work.steps; ++step) {
    if (!children.TellAll(digest->value()) || !children.HearAll(digest)) return false;
    ReportStep(step, work.steps, digest->value());
    Pause(work.pause_ms);
  }
  return children.HearAll(digest);
}

}  // namespace

int main(int argc, char** argv) {
  Work work;
  int count = 2;
  ParseOptions(argc, argv,
               {{"steps", &work.steps, 0, "steps to take"},
                {"processes", &count, 1, "children, each with a context of its own"},
                {"gpus", &work.gpus, 0, "use no more GPUs than this, in turn; 0: all that are visible"},
                {"mib", &work.mib, 1, "MiB of device memory of each child"},
                {"pause-ms", &work.pause_ms, 0, "milliseconds between steps"}});
  // A child that is gone is an error of the write to it, which says more than the signal.
  std::signal(SIGPIPE, SIG_IGN);
  Children children;
  Digest digest;
  bool well = children.Start(work, count) && RunSteps(work, children, &digest);
  well = children.Wait() && well;
  if (!well) return 1;
  ReportDigest(digest);
  return 0;
}
