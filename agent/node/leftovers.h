// What is left of users' jobs, and takes as long to remove as they like.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace siding {

// Removals, of each user one after the other, on a thread that nothing waits for: there may be millions of
// files, or a file system that does not answer. Who has left such a thing keeps only what else is his from
// being removed.
//
// Thread-safe.
class Leftovers {
 public:
  Leftovers();
  // Drops what has not begun, and leaves behind what does not end in a moment.
  ~Leftovers();
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

  // `removal` may outlive this object and everything else, so it owns all that it uses.
  void Add(uid_t user, std::function<void()> removal);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace siding
