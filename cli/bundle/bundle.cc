#include "cli/bundle/bundle.h"

#include <array>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/gzip.h"

namespace siding::cli {
namespace {

constexpr size_t kBlock = 512;

// A header of POSIX.1's ustar interchange format, by the offsets of its fields.
class Header {
 public:
  Header(const std::string& name, size_t size, Time now) {
    Put(0, name);
    Put(100, "0000600");
    Put(108, "0000000");  // user and group
    Put(116, "0000000");
    Put(124, absl::StrFormat("%011o", size));
    Put(136, absl::StrFormat("%011o", ToMicros(now) / 1'000'000));
    Put(148, "        ");  // as the sum counts itself
    Put(156, "0");         // a regular file
    Put(257, std::string("ustar\0"
                         "00",
                         8));
    unsigned sum = 0;
    for (const char c : bytes_) sum += static_cast<unsigned char>(c);
    Put(148, std::string(absl::StrFormat("%06o", sum)) + std::string("\0 ", 2));
  }
  std::string Bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  void Put(size_t at, const std::string& text) { memcpy(bytes_.data() + at, text.data(), text.size()); }
  std::array<char, kBlock> bytes_{};
};

void AddFile(std::string& archive, const std::string& name, const std::string& text, Time now) {
  archive += Header(name, text.size(), now).Bytes();
  archive += text;
  archive.resize((archive.size() + kBlock - 1) / kBlock * kBlock);
}

bool IsBlank(const std::string& text, size_t at) {
  return at >= text.size() || absl::ascii_isspace(static_cast<unsigned char>(text[at]));
}

// Where an address ends that begins there: at a blank, or at what closes it in YAML. A comma, a bracket or a
// quote may as well be a part of it, and is if more of it follows.
size_t EndOfAddress(const std::string& text, size_t at) {
  static constexpr char kClosing[] = ",}]'\"";
  for (; !IsBlank(text, at); ++at) {
    size_t behind = at;
    while (!IsBlank(text, behind) && strchr(kClosing, text[behind]) != nullptr) ++behind;
    if (behind > at && IsBlank(text, behind)) return at;
  }
  return at;
}

}  // namespace

std::string ContentsOf(const std::vector<BundleEntry>& entries, Time now) {
  std::string text = absl::StrCat(
      "Collected by sidingctl bundle at ", FormatTime(now),
      ".\nNot in it: commands, environments and folders of jobs, keys, certificates, and what checkpoints "
      "contain.\nIn it: names of users, jobs and nodes, and what logs and events say of them.\n\n");
  for (const BundleEntry& entry : entries) {
    if (entry.missing.empty())
      absl::StrAppend(
          &text, absl::StrFormat("%-32s %10s  %s\n", entry.name,
                                 FormatBytes(Bytes{static_cast<int64_t>(entry.text.size())}), entry.what));
    else
      absl::StrAppend(
          &text, absl::StrFormat("%-32s %10s  %s: %s\n", entry.name, "missing", entry.what, entry.missing));
  }
  return text;
}

std::string Pack(const std::string& folder, const std::vector<BundleEntry>& entries, Time now) {
  std::string archive;
  AddFile(archive, folder + "/README.txt", ContentsOf(entries, now), now);
  for (const BundleEntry& entry : entries) {
    if (entry.missing.empty()) AddFile(archive, absl::StrCat(folder, "/", entry.name), entry.text, now);
  }
  archive.resize(archive.size() + 2 * kBlock);  // which says that it ends
  return Gzip(archive);
}

std::string WithoutSecretUrls(const std::string& text) {
  static constexpr char kMark[] = "://";
  std::string cleaned;
  size_t done = 0;
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, done)) {
    const size_t begin = at + strlen(kMark);
    const size_t end = EndOfAddress(text, begin);
    const std::string address = text.substr(begin, end - begin);
    const size_t path = address.find_first_of("/?#");
    std::string host = address.substr(0, path);
    if (const size_t user = host.rfind('@'); user != std::string::npos)
      host = "(left out)@" + host.substr(user + 1);
    absl::StrAppend(&cleaned, text.substr(done, begin - done), host,
                    path == std::string::npos ? "" : "/(left out)");
    done = end;
  }
  return cleaned + text.substr(done);
}

std::string EndOf(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t line = text.find('\n', text.size() - most);
  return absl::StrCat("(only the end)\n", line == std::string::npos ? "" : text.substr(line + 1));
}

}  // namespace siding::cli
