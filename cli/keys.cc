#include "cli/keys.h"

#include <poll.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

namespace siding::cli {
namespace {

// For the handler of signals, which cannot be told anything else.
int terminal = -1;
termios before;

void PutBack(int signal) {
  tcsetattr(terminal, TCSANOW, &before);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

}  // namespace

Keys::Keys(int fd) : fd_(fd) {
  // A program behind would be stopped for asking.
  if (isatty(fd) != 1 || tcgetpgrp(fd) != getpgrp() || tcgetattr(fd, &before) != 0) return;
  terminal = fd;
  for (int signal : kEnds) ::signal(signal, PutBack);
  termios keys = before;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  reads_ = tcsetattr(fd, TCSANOW, &keys) == 0;
}

Keys::~Keys() {
  if (terminal != fd_) return;
  tcsetattr(fd_, TCSANOW, &before);
  for (int signal : kEnds) ::signal(signal, SIG_DFL);
  terminal = -1;
}

char Keys::Wait(Duration most) {
  if (!reads_) {
    std::this_thread::sleep_for(most);
    return 0;
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(most).count();
  pollfd ready{fd_, POLLIN, 0};
  char key = 0;
  if (poll(&ready, 1, static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max()))) <=
      0)
    return 0;
  if (read(fd_, &key, 1) == 1) return key;
  reads_ = false;  // the terminal has gone
  return 0;
}

}  // namespace siding::cli
