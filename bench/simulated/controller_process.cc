#include "bench/simulated/controller_process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace siding {
namespace {

constexpr double kMiB = 1 << 20;

std::vector<char*> Argv(std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return argv;
}

// The number behind `field` in /proc/PID/status.
double StatusOf(pid_t pid, const std::string& field) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field, 0) == 0) return std::stod(line.substr(field.size()));
  }
  return 0;
}

}  // namespace

int FreePort() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(socket);
  return bound ? ntohs(address.sin_port) : 0;
}

double CpuSecondsOf(pid_t pid) {
  constexpr int kFieldsBetween = 11;  // of /proc/PID/stat, from the state to the user time
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  if (text.empty()) return 0;
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

ControllerProcess::ControllerProcess(const std::string& program, const std::vector<std::string>& arguments) {
  char name[] = "/tmp/siding-bench-XXXXXX";
  folder_ = mkdtemp(name);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));  // other users connect as well
  std::vector<std::string> all = {program, "--socket", socket(), "--state-dir", folder_ + "/state"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const std::vector<char*> argv = Argv(all);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // not left behind if this program is interrupted
  const int out = open(log().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (out < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) _exit(126);
  execv(argv[0], argv.data());
  _exit(127);
}

ControllerProcess::~ControllerProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  std::filesystem::remove_all(folder_);
}

bool ControllerProcess::IsRunning() const {
  siginfo_t ended{};
  return waitid(P_PID, pid_, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

double ControllerProcess::StatusMiB(const std::string& field) const { return StatusOf(pid_, field) / 1024; }

int ControllerProcess::Threads() const { return static_cast<int>(StatusOf(pid_, "Threads:")); }

int ControllerProcess::Descriptors() const {
  std::error_code error;
  const std::filesystem::directory_iterator folder("/proc/" + std::to_string(pid_) + "/fd", error);
  return static_cast<int>(std::distance(begin(folder), end(folder)));
}

double ControllerProcess::JournalMiB() const {
  double bytes = 0;
  for (const char* file : {"journal.db", "journal.db-wal"}) {
    std::error_code error;
    const auto size = std::filesystem::file_size(folder_ + "/state/" + file, error);
    if (!error) bytes += static_cast<double>(size);
  }
  return bytes / kMiB;
}

}  // namespace siding
