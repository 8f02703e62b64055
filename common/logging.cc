#include "common/logging.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"

namespace siding {
namespace {

// What is logged holds names, paths and messages of others: none of them may look like a line of ours.
class PayloadOnOneLine final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string line = OneLogLine({message.payload.data(), message.payload.size()});
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PayloadOnOneLine>();
  }
};

// C1 controls, which some terminals obey as well.
bool IsSecondSet(unsigned char first, unsigned char second) {
  return first == 0xc2 && second >= 0x80 && second < 0xa0;
}

}  // namespace

std::string OneLogLine(const std::string& text) {
  std::string line;
  line.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&line, "\\x%02x", c);
    } else if (i + 1 < text.size() && IsSecondSet(c, static_cast<unsigned char>(text[i + 1]))) {
      absl::StrAppendFormat(&line, "\\xc2\\x%02x", static_cast<unsigned char>(text[++i]));
    } else {
      line += text[i];
    }
  }
  return line;
}

absl::Status SetUpLogging(const std::string& program, const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("log level '", level, "': expected trace, debug, info, warning, error or off"));
  }
  auto logger = spdlog::stderr_color_mt(program);
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PayloadOnOneLine>('V').set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %^%l%$ %V");
  logger->set_formatter(std::move(formatter));
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

}  // namespace siding
