// siding-runc: the program that a container runtime (containerd, CRI-O) calls in place of runc for pods with
// the runtime class `siding`. It asks this node's agent whether a container that is about to be made is to be
// restored from an image, and does so; everything else it leaves to runc.
//
// Beside it may be a file siding-runc.conf with lines "runc PATH", "criu FOLDER", "socket PATH" and "patience
// SECONDS", how long the agent is waited for, such as while it is being restarted.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agent/criu/criu.h"
#include "agent/os/processes.h"
#include "agent/pods/container_files.h"
#include "agent/pods/criu_settings.h"
#include "agent/pods/end_runc.h"
#include "agent/pods/messages.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/packets.h"
#include "common/status.h"

namespace siding {
namespace {

// Less than a kubelet waits for its runtime, which is two minutes.
constexpr int kPatience = 100;  // seconds
constexpr int kLonger = 10;     // than the agent was told
constexpr auto kTryAgain = std::chrono::milliseconds(200);
constexpr char kRestoredMark[] = "siding-restored";  // in runc's own folder of the container

struct Settings {
  std::string runc = "runc";
  std::string criu;  // the folder; empty: found in PATH
  std::string socket = kPodsSocket;
  int patience = kPatience;
};

Settings ReadSettings() {
  Settings settings;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto text = ReadFile((self.parent_path() / "siding-runc.conf").string());
  if (!text.ok()) return settings;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const std::pair<std::string, std::string> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (words.first == "runc") settings.runc = words.second;
    if (words.first == "criu") settings.criu = words.second;
    if (words.first == "socket") settings.socket = words.second;
    if (words.first == "patience" && !absl::SimpleAtoi(words.second, &settings.patience))
      settings.patience = kPatience;
  }
  return settings;
}

// runc's own command line, as far as it matters here.
struct CommandLine {
  std::vector<std::string> globals;  // before the verb
  std::string verb;
  std::map<std::string, std::string> options;  // of the verb, without their dashes; flags have ""
  std::string id;
  std::string root = "/run/runc";
  std::string log;
};

CommandLine ParseCommandLine(const std::vector<std::string>& words) {
  static const std::set<std::string> kWithValue = {"log",      "log-format",  "root", "criu",
                                                   "rootless", "bundle",      "b",    "console-socket",
                                                   "pid-file", "preserve-fds"};
  CommandLine line;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    const size_t first = i;
    if (!absl::ConsumePrefix(&word, "-")) {
      (line.verb.empty() ? line.verb : line.id) = words[i];
      continue;
    }
    absl::ConsumePrefix(&word, "-");
    std::pair<std::string, std::string> option = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (!absl::StrContains(word, '=') && kWithValue.contains(option.first) && i + 1 < words.size())
      option.second = words[++i];
    if (option.first == "b") option.first = "bundle";
    if (line.verb.empty()) {
      line.globals.insert(line.globals.end(), words.begin() + first, words.begin() + i + 1);
      if (option.first == "root") line.root = option.second;
      if (option.first == "log") line.log = option.second;
    } else {
      line.options[option.first] = option.second;
    }
  }
  return line;
}

[[noreturn]] void Become(const Settings& settings, const std::vector<std::string>& words) {
  std::vector<char*> argv = {const_cast<char*>(settings.runc.c_str())};
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  fprintf(stderr, "siding-runc: %s: %s\n", settings.runc.c_str(), strerror(errno));
  _exit(127);
}

using Steady = std::chrono::steady_clock;
constexpr int kTooLate = -1;

// Its exit code; kTooLate: it was ended. Its standard streams are ours, which become the container's.
int RunRunc(const Settings& settings, const std::vector<std::string>& words,
            std::optional<Steady::time_point> until = std::nullopt) {
  const pid_t child = fork();
  if (child == 0) Become(settings, words);
  int status = 0;
  if (child < 0) return 127;
  const auto ended = [&] {
    siginfo_t info = {};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
  };
  const bool late = until && !PollUntil(ended, std::chrono::duration_cast<Duration>(*until - Steady::now()));
  if (late) EndRunc(child, RuncWork::kRestore);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (late) return kTooLate;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Where the container runtime looks for the reason.
int Fail(const CommandLine& line, const absl::Status& why) {
  const std::string message = absl::StrCat("siding-runc: ", std::string(why.message()));
  fprintf(stderr, "%s\n", message.c_str());
  if (line.log.empty()) return 1;
  const UniqueFd log(open(line.log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const nlohmann::json entry = {
      {"level", "error"}, {"msg", message}, {"time", FormatTime(SystemClock().Now())}};
  const std::string text = entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (write(log.get(), text.data(), text.size()) < 0) return 1;
  return 1;
}

absl::StatusOr<UniqueFd> Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return absl::InvalidArgumentError(path + ": too long");
  std::strcpy(address.sun_path, path.c_str());
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid() || connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return ErrnoError(errno, path);
  return fd;
}

// Says what is to be started, and hears how. An agent that cannot be reached, or that ends before it has
// answered, may be on its way to be started again.
absl::StatusOr<ContainerStart> AskAgent(const Settings& settings, StartingContainer starting,
                                        std::chrono::steady_clock::time_point end, UniqueFd& connection) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(end - std::chrono::steady_clock::now()).count();
    absl::Status problem;
    if (!connection.valid()) {
      auto made = Connect(settings.socket);
      problem = Annotate(made.status(), "this node's siding-agent cannot be reached");
      if (made.ok()) connection = std::move(*made);
    }
    if (connection.valid()) {
      starting.patience = std::chrono::seconds(std::max<int64_t>(left, 1));
      const timeval patience{std::max<time_t>(left, 1) + kLonger, 0};
      setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      SendPacket(connection.get(), ToText(starting));
      const auto answer = ReceivePacket(connection.get(), kMostPodsMessage);
      if (answer.ok()) return ParseStart(*answer);
      problem = Annotate(answer.status(), "this node's siding-agent does not answer");
      connection.Reset();
    }
    if (std::chrono::steady_clock::now() + kTryAgain >= end) return problem;
    std::this_thread::sleep_for(kTryAgain);
  }
}

absl::StatusOr<pid_t> ReadPid(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  pid_t pid = 0;
  if (!absl::SimpleAtoi(text, &pid)) return absl::InternalError(path + ": expected a number");
  return pid;
}

absl::Status Restore(const Settings& settings, const CommandLine& line, const ContainerConfig& config,
                     const std::string& bundle, const std::string& pid_file, const std::string& image,
                     Steady::time_point end) {
  if (config.has_terminal)
    return absl::FailedPreconditionError("containers with a terminal are not restored");
  SIDING_RETURN_IF_ERROR(PutContainerFilesBack(config, image));
  const std::string work = bundle + "/siding-restore";
  SIDING_RETURN_IF_ERROR(MakeDirectories(work, 0700));
  std::vector<std::string> words = line.globals;
  for (const std::string& word :
       {std::string("restore"), std::string("--detach"), std::string("--file-locks"), std::string("--bundle"),
        bundle, std::string("--image-path"), image, std::string("--work-path"), work,
        std::string("--pid-file"), pid_file})
    words.push_back(word);
  if (line.options.contains("no-pivot")) words.push_back("--no-pivot");
  words.push_back(line.id);
  const int code = RunRunc(settings, words, end);
  if (code == 0)
    return WriteFileAtomically(absl::StrCat(line.root, "/", line.id, "/", kRestoredMark), "", 0600);
  const auto log = ReadFile(work + "/restore.log");
  std::string said = log.ok() ? WhyCriuFailed(*log).why : "";
  if (code == kTooLate)
    said = absl::StrCat("criu did not end within ", settings.patience, " s, and was ended");
  return absl::InternalError(
      absl::StrCat("the image could not be restored: ", said.empty() ? "runc restore failed" : said));
}

int Create(const Settings& settings, const std::vector<std::string>& words, const CommandLine& line) {
  const auto bundle_option = line.options.find("bundle");
  std::error_code error;
  const std::string bundle = bundle_option != line.options.end()
                                 ? bundle_option->second
                                 : std::filesystem::current_path(error).string();
  const auto config = ReadContainerConfig(bundle);
  if (!config.ok()) return Fail(line, config.status());
  if (config->is_sandbox || config->pod_uid.empty()) Become(settings, words);
  const StartingContainer starting{config->pod_uid, config->name, {line.root, line.id, bundle}};
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(settings.patience);
  const auto given = line.options.find("pid-file");
  const std::string pid_file = given != line.options.end() ? given->second : bundle + "/siding.pid";
  UniqueFd agent;
  const auto tell = [&](const absl::StatusOr<pid_t>& made) { SendPacket(agent.get(), ToText(made)); };
  absl::Status failed;  // of the restore, if there was one
  for (;;) {
    const auto start = AskAgent(settings, starting, end, agent);
    if (!start.ok()) return Fail(line, start.status());
    if (const absl::Status named = NameCriuSettings(bundle); !named.ok()) {
      tell(named);
      return Fail(line, named);
    }
    if (start->image_folder.empty()) break;
    // To hang or to be short of time is not the same: the kubelet may try again, and need not wait then. Not
    // where it may not (restartPolicy Never), which is not known here, so most of the time is for trying.
    if (end - Steady::now() < std::chrono::seconds(settings.patience) / 4)
      return Fail(line, absl::UnavailableError("its image was verified too late to restore it in time"));
    const absl::Status restored =
        Restore(settings, line, *config, bundle, pid_file, start->image_folder, end);
    const absl::StatusOr<pid_t> made = restored.ok() ? ReadPid(pid_file) : absl::StatusOr<pid_t>(restored);
    tell(made);
    if (made.ok()) return 0;
    failed = made.status();  // the agent says what now
  }
  // Its files are not those of its beginning any more.
  if (!failed.ok()) {
    tell(failed);
    return Fail(line, failed);
  }
  const int code = RunRunc(settings, words);
  if (code != 0) {
    tell(absl::InternalError("runc create failed"));  // it has said why
    return code;
  }
  const auto made = ReadPid(pid_file);
  tell(made);
  return made.ok() ? 0 : Fail(line, made.status());
}

int Main(const std::vector<std::string>& words) {
  const Settings settings = ReadSettings();
  if (!settings.criu.empty()) {
    const char* path = std::getenv("PATH");
    setenv("PATH", absl::StrCat(settings.criu, ":", path != nullptr ? path : "").c_str(), 1);
  }
  const CommandLine line = ParseCommandLine(words);
  if (line.verb == "create") return Create(settings, words, line);
  // It runs since it was restored.
  const std::string mark = absl::StrCat(line.root, "/", line.id, "/", kRestoredMark);
  if (line.verb == "start" && unlink(mark.c_str()) == 0) return 0;
  Become(settings, words);
}

}  // namespace
}  // namespace siding

int main(int argc, char** argv) { return siding::Main({argv + 1, argv + argc}); }
