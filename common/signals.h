// How our services are asked to stop.
#pragma once

#include <csignal>

namespace siding {

// SIGTERM and SIGINT, blocked from here on so that only who waits for them takes them. Call it before any
// thread starts: threads inherit it. A peer that goes away must not end the process either: SIGPIPE is
// ignored.
inline sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

}  // namespace siding
