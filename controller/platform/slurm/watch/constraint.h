// --constraint: which features a job wants its nodes to have.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace siding::slurm {

// Features that are joined by & (all of them) or by | (one of them). A value.
class Constraint {
 public:
  // kUnimplemented for Slurm's other forms (both signs at once, counts, brackets), which nothing is planned
  // with; the message names the option.
  static absl::StatusOr<Constraint> Parse(const std::string& text);
  bool MetBy(const std::vector<std::string>& features) const;

 private:
  std::vector<std::string> wanted_;
  bool all_ = true;
};

}  // namespace siding::slurm
