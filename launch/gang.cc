#include "launch/gang.h"

#include <cstdint>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace siding::launch {
namespace {

absl::StatusOr<int> Number(const Environment& environment, const char* name, int least, int most) {
  const char* const text = environment(name);
  int value = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &value) || value < least || value > most)
    return absl::InvalidArgumentError(absl::StrCat(name, ": expected a number from ", least, " to ", most,
                                                   ", not '", text == nullptr ? "" : text, "'"));
  return value;
}

}  // namespace

absl::StatusOr<Gang> FindGang(const Environment& environment) {
  const char* const addresses = environment("SIDING_GANG_ADDRS");
  if (addresses == nullptr || *addresses == '\0')
    return absl::FailedPreconditionError(
        "this is no job that keeps its connections: submit it with --connections keep");
  Gang gang;
  gang.addresses = absl::StrSplit(addresses, ',');
  SIDING_ASSIGN_OR_RETURN(gang.rank,
                          Number(environment, "SIDING_RANK", 0, static_cast<int>(gang.addresses.size()) - 1));
  SIDING_ASSIGN_OR_RETURN(gang.slots,
                          Number(environment, "SIDING_SLOTS", 1, std::numeric_limits<int>::max()));
  const char* const link = environment("SIDING_GANG_IF");
  if (link == nullptr || *link == '\0')
    return absl::InvalidArgumentError("SIDING_GANG_IF: expected the name of a network device");
  gang.link = link;
  return gang;
}

}  // namespace siding::launch
