// Requests to the operators' page: address, fields and headers, as its server hands them over. The first line
// is the method and the path, the second the fields after ?, each other one a header.
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "page/server/question.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::vector<std::string> lines = absl::StrSplit(fuzz::TextOf(data, size), '\n');
  page::HttpRequest request;
  const std::pair<std::string, std::string> first = absl::StrSplit(lines[0], absl::MaxSplits(' ', 1));
  request.method = first.first;
  request.path = first.second;
  for (size_t i = 1; i < lines.size(); ++i) {
    const char* const between = i == 1 ? "&" : "\r";
    for (const auto field : absl::StrSplit(lines[i], between, absl::SkipEmpty())) {
      (i == 1 ? request.query : request.headers)
          .emplace_back(absl::StrSplit(field, absl::MaxSplits(i == 1 ? '=' : ':', 1)));
    }
  }
  const page::HostNames names{"siding.example.org", "[fd00::1]"};
  request.peer.tls = size % 2 == 0;
  const auto read = page::ReadQuestion(request, names);
  const auto again = page::ReadQuestion(request, names);
  fuzz::Expect(read.index() == again.index(), "the same request is read the same way");
  if (const auto* refusal = std::get_if<page::Refusal>(&read)) {
    fuzz::Expect(refusal->status >= 400 && refusal->status < 500, "a refusal is the client's fault");
    fuzz::Expect(!refusal->why.empty() && refusal->why.size() < 2000, "a refusal says why, and is short");
    return 0;
  }
  const auto& question = std::get<page::Question>(read);
  fuzz::Expect(request.method == "GET" || request.method == "HEAD", "only reading is allowed");
  fuzz::Expect(request.Header("host").has_value(), "there is one host");
  fuzz::Expect(absl::StartsWith(question.key, "/api/v1/"), "the key has the address");
  fuzz::Expect(question.key == std::get<page::Question>(again).key, "the same question has the same key");
  if (const auto* events = std::get_if<page::FollowEvents>(&question.what))
    fuzz::Expect(events->after.value_or(0) >= 0, "sequences are not negative");
  return 0;
}
