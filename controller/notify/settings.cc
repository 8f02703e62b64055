#include "controller/notify/settings.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace siding {
namespace {

constexpr size_t kLongestName = 64;

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; });
}

bool IsLoopback(const std::string& host) {
  in_addr address{};
  if (inet_pton(AF_INET, host.c_str(), &address) == 1) return ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
  return host == "localhost" || host == "[::1]";
}

// Without its port. Empty: it is none that everybody reads in the same way.
std::string HostOf(absl::string_view address) {
  const auto is_usual = [](unsigned char c) {
    return absl::ascii_isalnum(c) || strchr(".-:[]", c) != nullptr;
  };
  if (address.empty() || !std::all_of(address.begin(), address.end(), is_usual)) return "";
  const size_t end = address[0] == '[' ? address.find(']') : address.find(':');
  if (address[0] == '[' && end == absl::string_view::npos) return "";
  return std::string(address.substr(0, address[0] == '[' ? end + 1 : end));
}

// https, or http to the loopback.
bool IsWebhookUrl(absl::string_view url) {
  const bool is_plain = absl::ConsumePrefix(&url, "http://");
  if (!is_plain && !absl::ConsumePrefix(&url, "https://")) return false;
  const bool is_visible =
      std::all_of(url.begin(), url.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
  const std::string host = HostOf(url.substr(0, url.find_first_of("/?#")));
  return is_visible && !host.empty() && (!is_plain || IsLoopback(host));
}

}  // namespace

absl::Status Check(const ReceiverSettings& settings) {
  if (!IsName(settings.name))
    return absl::InvalidArgumentError(absl::StrCat("name: '", settings.name, "'; expected up to ",
                                                   kLongestName, " letters, digits, '-' and '_'"));
  const bool is_log = settings.log != EventLogKind::kNone;
  if (is_log == !settings.url.empty())
    return absl::InvalidArgumentError(settings.name + ": expected either url, or log");
  if (is_log && (!settings.secret.empty() || !settings.authority.empty()))
    return absl::InvalidArgumentError(settings.name + ": expected secret and ca with url only");
  if (is_log) return absl::OkStatus();
  if (!IsWebhookUrl(settings.url))
    return absl::InvalidArgumentError(
        settings.name +
        ": url: expected https://HOST/PATH, or http:// to an address of the loopback, without a user");
  if (settings.secret.empty())
    return absl::InvalidArgumentError(settings.name +
                                      ": expected secret, the file with the key that calls are signed with");
  return absl::OkStatus();
}

}  // namespace siding
