#include "common/logging.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/utf8.h"
#include "nlohmann/json.hpp"
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

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line =
        JsonLogLine(std::chrono::time_point_cast<Duration>(message.time), {level.data(), level.size()},
                    {message.logger_name.data(), message.logger_name.size()},
                    OneLogLine({message.payload.data(), message.payload.size()})) +
        "\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

std::atomic<spdlog::level::level_enum> first_level{spdlog::level::info};

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

absl::StatusOr<LogFormat> ParseLogFormat(const std::string& name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError(absl::StrCat("log format '", name, "': expected text or json"));
}

absl::Status SetUpLogging(const std::string& program, const std::string& level, LogFormat format) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return absl::InvalidArgumentError(
        absl::StrCat("log level '", level, "': expected trace, debug, info, warning, error or off"));
  }
  auto logger = spdlog::stderr_color_mt(program);
  if (format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PayloadOnOneLine>('V').set_pattern("%Y-%m-%dT%H:%M:%S.%e %n %^%l%$ %V");
    logger->set_formatter(std::move(formatter));
  }
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
  first_level = parsed;
  return absl::OkStatus();
}

bool TurnLogLevel(int signal) {
  if (signal != SIGUSR1 && signal != SIGUSR2) return false;
  const auto level = signal == SIGUSR1 ? spdlog::level::debug : first_level.load();
  spdlog::default_logger()->set_level(level);
  // Also where that is not logged any more.
  spdlog::default_logger()->log(std::max(level, spdlog::level::info), "what is logged from now on: {}",
                                spdlog::level::to_string_view(level));
  return true;
}

std::string JsonLogLine(Time time, const std::string& level, const std::string& program,
                        const std::string& text) {
  nlohmann::ordered_json line = {{"time", FormatTime(time)}, {"level", level}, {"program", program}};
  absl::string_view rest = text;
  int64_t job = 0;
  if (absl::ConsumePrefix(&rest, "job ") &&
      absl::SimpleAtoi(rest.substr(0, rest.find_first_of(" :,")), &job) && job > 0)
    line["job"] = job;
  line["text"] = text;
  // Bytes that are no text become U+FFFD.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace siding
