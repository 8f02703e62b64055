#include "common/logging.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/utf8.h"
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

std::string Escaped(const std::string& text, const Unseen& unseen) {
  if (unseen.character == '\n') return "\\n";
  if (unseen.character == '\t') return "\\t";
  if (unseen.character > 0xFF) return absl::StrFormat("\\u%04x", unseen.character);
  std::string bytes;
  for (size_t i = 0; i < unseen.size; ++i)
    absl::StrAppendFormat(&bytes, "\\x%02x", static_cast<unsigned char>(text[unseen.at + i]));
  return bytes;
}

}  // namespace

std::string OneLogLine(const std::string& text) {
  std::string line;
  line.reserve(text.size());
  size_t at = 0;
  for (auto unseen = FindUnseen(text); unseen; unseen = FindUnseen(text, at)) {
    line.append(text, at, unseen->at - at);
    line += Escaped(text, *unseen);
    at = unseen->at + unseen->size;
  }
  line.append(text, at);
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
