// Which tier a folder is: tier/id below its root holds a random number, which the first who uses the tier
// writes there. A mount point that is empty because nothing is mounted, and another file system in its place,
// are so told from the tier.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/layout.h"

namespace siding::store {

// The tier's id. A tier without one gets it, also if several nodes try at the same time. Its staging/ must
// exist.
absl::StatusOr<std::string> TierId(const Layout& layout);

// kUnavailable unless the tier with that id is there. Without an id (of a tier that is only looked at) its
// images/ is what it is known by.
absl::Status CheckTier(const Layout& layout, const std::string& id);

// What a node remembers, in a file of its own, of the tier that it has used at a root: its id, and if it is
// in memory the start of the machine that it lives for. An empty path: nothing.
class RememberedTier {
 public:
  // `boot`: the start that this is; empty: not known.
  RememberedTier(std::string file, std::string boot) : file_(std::move(file)), boot_(std::move(boot)) {}
  // kUnavailable if another tier than the one remembered is there, or none; says what to do if it was
  // replaced. One in memory is followed by another at the next start. Changes nothing.
  absl::Status Check(const Layout& layout) const;
  absl::Status Remember(const Layout& layout, const std::string& id) const;

 private:
  struct Remembered {
    std::string id;
    std::string boot;  // empty: it is on a disk
  };
  absl::StatusOr<Remembered> Read() const;

  const std::string file_;
  const std::string boot_;
};

}  // namespace siding::store
