#include "spank/options.h"

#include <signal.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace siding::spank {
namespace {

// A century is longer than any job; beyond it arithmetic on times could overflow.
constexpr int64_t kLongest = 100LL * 365 * 86400 * kSecond;
constexpr int64_t kLatestSecond = 253'402'300'799;  // of the year 9999
constexpr int64_t kDefaultGrace = 30 * kSecond;

struct Unit {
  const char* name;
  double microseconds;
};
constexpr Unit kUnits[] = {{"us", 1},     {"ms", 1e3},   {"s", 1e6},    {"m", 60e6},
                           {"min", 60e6}, {"h", 3600e6}, {"d", 86400e6}};

struct MethodName {
  Method method;
  const char* name;
};
constexpr MethodName kMethods[] = {{kSuspend, "suspend"},
                                   {kCheckpoint, "checkpoint"},
                                   {kMigrate, "migrate"},
                                   {kApp, "app"},
                                   {kKill, "kill"}};

constexpr struct {
  const char* name;
  int number;
} kSignals[] = {{"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
                {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CONT", SIGCONT},
                {"URG", SIGURG},   {"XCPU", SIGXCPU}};

bool Equal(const char* name, const char* text, int length) {
  return static_cast<int>(std::strlen(name)) == length && std::strncmp(name, text, length) == 0;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

const char* SetMethods(Options& options, const char* value) {
  unsigned methods = 0;
  for (const char* at = value; value != nullptr;) {
    const int length = static_cast<int>(std::strcspn(at, ","));
    const unsigned before = methods;
    for (const auto& [method, name] : kMethods) {
      if (Equal(name, at, length)) methods |= method;
    }
    if (methods == before)
      return "expected a list of suspend, checkpoint, migrate, app and kill, each at most once";
    at += length;
    if (*at++ == '\0') break;
  }
  options.preemptible = true;
  options.methods = methods;
  return nullptr;
}

const char* SetSignal(Options& options, const char* value) {
  static constexpr char kExpected[] = "expected a signal that can be caught, such as USR1, or USR1@2m";
  const int length = static_cast<int>(std::strcspn(value, "@"));
  const int number = ParseSignal(value, length);
  int64_t grace = kDefaultGrace;
  if (number == 0 || (value[length] == '@' && !ParseDuration(value + length + 1, grace))) return kExpected;
  options.checkpoint_signal = number;
  options.signal_grace_us = grace;
  return nullptr;
}

const char* SetStartBy(Options& options, const char* value) {
  int64_t time = 0;
  const bool relative = value[0] == '+';
  if ((relative ? !ParseDuration(value + 1, time) : !ParseTime(value, time)) || time <= 0)
    return "expected +DURATION, such as +60s, or a time, such as 2026-05-01T12:00:00Z";
  (relative ? options.start_within_us : options.start_by_us) = time;
  (relative ? options.start_by_us : options.start_within_us) = 0;
  return nullptr;
}

const char* SetDuration(int64_t& place, const char* value) {
  int64_t duration = 0;
  if (!ParseDuration(value, duration) || duration == 0)
    return "expected a duration with its unit, such as 90s, 1m30s or 2h";
  place = duration;
  return nullptr;
}

const char* SetInterval(int64_t& place, const char* value) {
  int64_t interval = 0;
  if (SetDuration(interval, value) != nullptr || interval < kSecond)
    return "expected a duration of 1s or more with its unit, such as 30m";
  place = interval;
  return nullptr;
}

const char* SetNotice(int64_t& place, const char* value) {
  int64_t notice = 0;
  if (SetDuration(notice, value) != nullptr || notice > kMostNoticeUs)
    return "expected a duration of up to 24h with its unit, such as 90s or 5m";
  place = notice;
  return nullptr;
}

const char* SetCollectives(Collectives& place, const char* value) {
  if (std::strcmp(value, "drainable") != 0 && std::strcmp(value, "as-is") != 0)
    return "expected drainable or as-is";
  place = *value == 'd' ? Collectives::kDrainable : Collectives::kAsIs;
  return nullptr;
}

const char* SetYesOrNo(bool& place, const char* value) {
  if (std::strcmp(value, "yes") != 0 && std::strcmp(value, "no") != 0) return "expected yes or no";
  place = *value == 'y';
  return nullptr;
}

const char* SetFiles(bool& append, const char* value) {
  const bool is_append = std::strcmp(value, "append") == 0;
  if (!is_append && std::strcmp(value, "exact") != 0) return "expected exact or append";
  append = is_append;
  return nullptr;
}

const char* SetConnections(bool& keep, const char* value) {
  const bool is_keep = std::strcmp(value, "keep") == 0;
  if (!is_keep && std::strcmp(value, "as-is") != 0) return "expected keep or as-is";
  keep = is_keep;
  return nullptr;
}

const char* SetCount(int& place, const char* value) {
  char* end = nullptr;
  errno = 0;
  const long count = std::strtol(value, &end, 10);
  if (!IsDigit(value[0]) || *end != '\0' || errno != 0 || count > 1'000'000)
    return "expected a whole number from 0 to 1000000";
  place = static_cast<int>(count);
  return nullptr;
}

}  // namespace

bool ParseDuration(const char* text, int64_t& microseconds) {
  double total = 0;
  if (*text == '\0') return false;
  while (*text != '\0') {
    char* end = nullptr;
    if (!IsDigit(*text) && *text != '.') return false;
    const size_t digits = std::strspn(text, "0123456789.");
    const double number = std::strtod(text, &end);
    if (end != text + digits) return false;  // "1e3", "0x1", "1.2.3"
    int letters = 0;
    while (std::isalpha(static_cast<unsigned char>(end[letters]))) ++letters;
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      if (Equal(unit.name, end, letters)) found = &unit;
    }
    if (found == nullptr) return false;
    total += number * found->microseconds;
    text = end + letters;
  }
  if (total > static_cast<double>(kLongest)) return false;
  microseconds =
      static_cast<int64_t>(total + 0.5);  // NOLINT(bugprone-incorrect-roundings): it is not negative
  return true;
}

bool ParseTime(const char* text, int64_t& microseconds) {
  // sscanf would also take signs and blanks.
  constexpr char kForm[] = "0000-00-00T00:00:00";
  constexpr int length = sizeof kForm - 1;
  for (int i = 0; i < length; ++i) {
    if (kForm[i] == '0' ? !IsDigit(text[i]) : text[i] != kForm[i]) return false;
  }
  std::tm parts = {};
  if (std::sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6) {
    return false;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const std::tm written = parts;
  const time_t seconds = timegm(&parts);  // puts "February 30th" right, which is how it is noticed
  if (parts.tm_mon != written.tm_mon || parts.tm_mday != written.tm_mday ||
      parts.tm_hour != written.tm_hour || parts.tm_min != written.tm_min || parts.tm_sec != written.tm_sec) {
    return false;
  }
  const char* rest = text + length;
  double fraction = 0;
  if (*rest == '.') {
    const size_t digits = std::strspn(rest + 1, "0123456789");
    if (digits == 0) return false;
    fraction = std::strtod(rest, nullptr);
    rest += 1 + digits;
  }
  int hours = 0, minutes = 0, end = 0;
  if (std::strcmp(rest, "Z") != 0) {
    if ((*rest != '+' && *rest != '-') || std::strspn(rest + 1, "0123456789:") != 5 ||
        std::sscanf(rest + 1, "%2d:%2d%n", &hours, &minutes, &end) != 2 || end != 5 || rest[6] != '\0' ||
        hours > 23 || minutes > 59) {
      return false;
    }
  }
  const int64_t offset = (hours * 3600LL + minutes * 60LL) * (*rest == '-' ? -1 : 1);
  const int64_t since_1970 = seconds - offset;
  if (since_1970 < 0 || since_1970 > kLatestSecond) return false;
  microseconds = since_1970 * kSecond + static_cast<int64_t>(fraction * 1e6);
  return true;
}

int ParseSignal(const char* text, int length) {
  if (length > 3 && std::strncmp(text, "SIG", 3) == 0) return ParseSignal(text + 3, length - 3);
  for (const auto& [name, number] : kSignals) {
    if (Equal(name, text, length)) return number;
  }
  int number = 0;
  for (int i = 0; i < length; ++i) {
    if (!IsDigit(text[i]) || i == 2) return 0;
    number = number * 10 + (text[i] - '0');
  }
  return number <= SIGRTMAX && number != SIGKILL && number != SIGSTOP ? number : 0;
}

const char* Set(Options& options, Flag flag, const char* value) {
  if (value == nullptr && flag != Flag::kPreemptible) return "a value is missing";
  switch (flag) {
    case Flag::kPreemptible:
      return SetMethods(options, value);
    case Flag::kCheckpointInterval:
      return SetInterval(options.checkpoint_interval_us, value);
    case Flag::kCheckpointSignal:
      return SetSignal(options, value);
    case Flag::kStartBy:
      return SetStartBy(options, value);
    case Flag::kNotice:
      return SetNotice(options.notice_us, value);
    case Flag::kFiles:
      return SetFiles(options.append_files, value);
    case Flag::kConnections:
      return SetConnections(options.keep_connections, value);
    case Flag::kMaxPreemptions:
      return SetCount(options.max_preemptions, value);
    case Flag::kGpuCollectives:
      return SetCollectives(options.gpu_collectives, value);
    case Flag::kAllowIoUring:
      return SetYesOrNo(options.allow_io_uring, value);
  }
  return "unknown flag";
}

const char* Contradiction(const Options& o) {
  if (o.on_demand() && o.preemptible) return "--siding-start-by and --siding-preemptible exclude each other";
  if (!o.preemptible && (o.checkpoint_interval_us != 0 || o.checkpoint_signal != 0 || o.notice_us != 0 ||
                         o.max_preemptions >= 0 || o.gpu_collectives != Collectives::kUnsaid ||
                         o.allow_io_uring || o.append_files || o.keep_connections)) {
    return "--siding-checkpoint-interval, --siding-checkpoint-signal, --siding-notice, "
           "--siding-max-preemptions, --siding-gpu-collectives, --siding-allow-io-uring, --siding-files and "
           "--siding-connections need --siding-preemptible";
  }
  if ((o.methods & kApp) != 0 && o.checkpoint_signal == 0)
    return "--siding-preemptible=app needs --siding-checkpoint-signal: how is the program told to save "
           "itself?";
  if (o.notice_us != 0 && o.methods != 0 && (o.methods & (kSuspend | kCheckpoint | kMigrate)) == 0)
    return "--siding-notice is for jobs that are suspended, checkpointed or migrated; app has its own grace";
  if (o.keep_connections && o.methods != 0 && (o.methods & (kCheckpoint | kMigrate)) == 0)
    return "--siding-connections=keep is for jobs that are checkpointed or migrated";
  return nullptr;
}

void FormatMethods(unsigned methods, char* text) {
  *text = '\0';
  for (const auto& [method, name] : kMethods) {
    if ((methods & method) == 0) continue;
    if (*text != '\0') std::strcat(text, ",");
    std::strcat(text, name);
  }
}

}  // namespace siding::spank
