// Sizes, durations and times as people write them. The plugin for Slurm has readers of its own: they must
// agree.
#include "common/units.h"

#include <cstring>

#include "common/tls/endpoint.h"
#include "spank/options.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  const auto bytes = ParseBytes(text);
  fuzz::Expect(!bytes.ok() || bytes->value >= 0, "sizes are not negative");
  ParseEndpoint(text);
  int64_t number = 0;
  if (size >= sizeof number) std::memcpy(&number, data, sizeof number);
  FormatDuration(Duration(number));
  FormatBytes(Bytes{number});
  FormatTime(FromMicros(number));
  if (text.find('\0') != std::string::npos) return 0;  // the plugin's texts end there
  const auto duration = ParseDuration(text);
  fuzz::Expect(spank::ParseDuration(text.c_str(), number) == duration.ok(),
               "both read a duration, or neither");
  // Half a microsecond may be rounded either way.
  if (duration.ok()) fuzz::Expect(std::abs(number - duration->count()) <= 1, "both read the same duration");
  if (text.empty() || text.front() == '+') return 0;
  const auto time = ParseTime(text, Time{});
  const bool plugins = spank::ParseTime(text.c_str(), number);
  fuzz::Expect(!plugins || time.ok(), "what the plugin reads, all read");
  if (plugins) fuzz::Expect(std::abs(number - ToMicros(*time)) <= 1, "both read the same time");
  return 0;
}
