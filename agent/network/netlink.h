// What the kernel is asked by netlink: messages, put together as bytes, and its answers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace siding {

// The bytes of a number or struct as they are in memory.
template <typename T>
std::string BytesOf(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Values as the kernel wants them, in the order of the machine or of the network.
std::string Attribute(int type, const std::string& value);
inline std::string NumberAttribute(int type, uint32_t value) { return Attribute(type, BytesOf(value)); }
std::string BigEndianAttribute(int type, uint32_t value);
std::string TextAttribute(int type, absl::string_view value);  // ends with a 0
std::string NestAttribute(int type, const std::string& attributes);

// `header` is the struct that follows the common one (BytesOf). Several messages in a row are one request.
std::string NetlinkMessage(int type, int flags, const std::string& header, const std::string& attributes);

// What an answer has of a kind. The views are into the bytes that were parsed. What is malformed ends it.
using NetlinkAttributes = std::map<int, absl::string_view>;
NetlinkAttributes ParseAttributes(absl::string_view bytes);
// nullopt: it has none, or one of another size.
template <typename T>
std::optional<T> ValueOf(const NetlinkAttributes& attributes, int type) {
  const auto found = attributes.find(type);
  T value;
  if (found == attributes.end() || found->second.size() != sizeof value) return std::nullopt;
  found->second.copy(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

// Both ask the kernel for the network that the calling thread is in. `protocol` is NETLINK_ROUTE or the like;
// `what` names in errors what is asked ("make the link x"), whose code is that of the kernel's errno.
// Thread-safe.
//
// Returns when the kernel has done it, or has refused a part of it. The last message that it acknowledges has
// NLM_F_ACK.
absl::Status TellKernel(int protocol, const std::string& request, const std::string& what);
// What comes after the common header of each answer: one, or all of a dump.
absl::StatusOr<std::vector<std::string>> AskKernel(int protocol, const std::string& request,
                                                   const std::string& what);

}  // namespace siding
