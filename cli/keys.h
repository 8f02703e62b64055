// Single keys from a terminal, while something is shown again and again.
#pragma once

#include "common/units.h"

namespace siding::cli {

// While it lives, a terminal that is in front gives its keys at once and does not show them; it is put back
// when the program is interrupted as well. At most one at a time; not thread-safe.
class Keys {
 public:
  // `fd`: of the terminal. One that is none, or another program's, is left alone.
  explicit Keys(int fd);
  ~Keys();
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;

  // The next key, or 0 when none is pressed for so long.
  char Wait(Duration most);

 private:
  const int fd_;
  bool reads_ = false;
};

}  // namespace siding::cli
