// How our services are asked to stop, and to log more or less.
#pragma once

#include <csignal>

namespace siding {

// SIGTERM and SIGINT, to stop, SIGUSR1 and SIGUSR2, for TurnLogLevel() (common/logging.h): blocked from here
// on so that only who waits for them takes them. Call it before any thread starts: threads inherit it. A peer
// that goes away must not end the process either: SIGPIPE is ignored.
inline sigset_t BlockServiceSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGUSR2);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

}  // namespace siding
