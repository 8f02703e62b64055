// Policy files: YAML -> model/policy.h. docs/admin/policies.md says what each key means.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/policy.h"

namespace siding {

struct PolicyFile {
  Policy policy;
  // What is valid but probably a mistake: a class that no job can be in, a policy under which no job makes
  // way.
  std::vector<std::string> warnings;
};

// Errors name file, line, key and what was expected. `name` stands for the file.
absl::StatusOr<PolicyFile> ParsePolicyFile(const std::string& text, const std::string& name);
absl::StatusOr<PolicyFile> LoadPolicyFile(const std::string& path);

// What it says, for people: a line a rule.
std::string Describe(const Policy& policy);

}  // namespace siding
