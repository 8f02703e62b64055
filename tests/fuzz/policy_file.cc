// Policy files. What was read is written as the same policy.
#include "policy/policy_file.h"

#include "policy/policy_text.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const auto file = ParsePolicyFile(fuzz::TextOf(data, size), "policy.yaml");
  if (!file.ok()) return 0;
  Describe(file->policy);
  const std::string written = ToYaml(file->policy);
  const auto again = ParsePolicyFile(written, "again.yaml");
  fuzz::Expect(again.ok() && ToYaml(again->policy) == written,
               "a policy that was written is read as the same");
  return 0;
}
