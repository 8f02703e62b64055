#include <atomic>
#include <csignal>
#include <iostream>

#include "store/tool/tool.h"

namespace {

std::atomic<int> stopped_by{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may store nothing else");

// The first one ends what is under way in order. Who cannot wait for that sends another one.
void OnSignal(int number) {
  stopped_by = number;
  std::signal(number, SIG_DFL);
}

}  // namespace

int main(int argc, char** argv) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, OnSignal);
  std::signal(SIGPIPE, SIG_IGN);  // who reads what it says may go: what it does comes to its end all the same
  const int code = siding::store::RunTool(argc, argv, std::cout, std::cerr, [] { return stopped_by != 0; });
  return code == siding::store::kStopped ? 128 + stopped_by : code;
}
