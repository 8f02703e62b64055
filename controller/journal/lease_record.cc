#include "controller/journal/lease_record.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace siding {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LeaseRecord, epoch, beat, released, shared, host, boot, pid,
                                                address, page)

std::string EncodeLease(const LeaseRecord& record) {
  return nlohmann::json(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<LeaseRecord> DecodeLease(const std::string& text) {
  if (text.find_first_not_of(" \n") == std::string::npos) return LeaseRecord();
  try {
    return nlohmann::json::parse(text).get<LeaseRecord>();
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("not a lease: ", error.what()));
  }
}

std::string HolderOf(const LeaseRecord& record) {
  return absl::StrCat("pid ", record.pid, " on ", record.host, " (", record.address, ")");
}

}  // namespace siding
