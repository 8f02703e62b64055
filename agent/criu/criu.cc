#include "agent/criu/criu.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agent/criu/given_descriptors.h"
#include "agent/criu/swrk.h"
#include "agent/os/processes.h"
#include "common/directory.h"
#include "common/fault.h"
#include "common/files.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kBuilt[] = "/opt/siding/sbin/criu";  // by deploy/get-criu
constexpr uint32_t kGhostLimit = 256u << 20;        // deleted files that are still open go into the image
constexpr char kAllMountsExternal[] = "mnt[]";
constexpr char kActsOnFilesAsUser[] = "files-as-user-11";  // what the patch says in the place of a name
constexpr char kActsAsUserSomehow[] = "files-as-user-";
constexpr Duration kDumpUndoPatience = std::chrono::seconds(10);
constexpr char kPasses[] = "siding/passes";
constexpr char kRefused[] = "siding/refused";
constexpr char kLacksAFile[] = "siding/lacks-a-file";
constexpr char kDumpLog[] = "criu-dump.log";
constexpr char kRestoreLog[] = "criu-restore.log";
constexpr char kTemporaryFolder[] = "/tmp", kTemporaryKind[] = ".criu.mntns.";

absl::StatusOr<UniqueFd> OpenFolder(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoError(errno, "open folder " + path);
  return fd;
}

absl::StatusOr<ino_t> NetworkOf(pid_t pid) {
  const std::string path = absl::StrCat("/proc/", pid, "/ns/net");
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return ErrnoError(errno, path);
  return info.st_ino;
}

enum class Of { kDump, kRestore };

// It says nothing of the image by itself.
absl::Status AroundError(const CriuRefusal& refusal) {
  absl::Status status = absl::InternalError(refusal.why);
  if (refusal.file && !refusal.around) status.SetPayload(kLacksAFile, absl::Cord());
  return status;
}

// Why CRIU failed, from its log; from its answer if the log says nothing.
absl::Status Explain(Of what, const std::string& log_path, const absl::StatusOr<criu::Response>& response) {
  CriuRefusal refusal;
  if (auto log = ReadFile(log_path); log.ok()) refusal = WhyCriuFailed(*log);
  std::string& why = refusal.why;
  const bool is_explained = !why.empty();
  if (!response.ok()) {
    return absl::Status(
        response.status().code(),
        absl::StrCat("criu: ", std::string(response.status().message()), why.empty() ? "" : ": ", why));
  }
  if (why.empty() && !response->cr_errmsg().empty()) why = "criu: " + response->cr_errmsg();
  if (why.empty()) why = absl::StrCat("criu: error ", response->cr_errno());
  if (SaysFull(why)) return absl::ResourceExhaustedError(why);
  if (what == Of::kRestore)
    return is_explained && !refusal.around && !refusal.file ? RefusalError(why) : AroundError(refusal);
  return refusal.passes ? PassingError(why) : absl::InternalError(why);
}

// Whether restored processes may run. CRIU tells their root's pid some time before it asks the last question,
// and to that one takes no for an answer only if it is ended, and they with it.
class Verdict {
 public:
  explicit Verdict(const CriuRestore& restore) : restore_(restore) {}

  bool Hear(const criu::Notification& notice) {
    if (notice.script() == "post-restore") {
      init_ = notice.pid();
      return Ask(restore_.may_connect);
    }
    return notice.script() != "pre-resume" || Ask(restore_.may_resume);
  }
  const absl::Status& status() const { return status_; }
  const std::atomic<bool>* refused() const { return &refused_; }

 private:
  bool Ask(const std::function<absl::Status(pid_t)>& may_go_on) {
    if (!may_go_on) return true;
    status_ = init_ > 0 ? may_go_on(init_) : absl::InternalError("criu does not say what it has restored");
    refused_ = !status_.ok();
    if (refused_ && init_ > 0) kill(init_, SIGKILL);
    return status_.ok();
  }

  const CriuRestore& restore_;
  pid_t init_ = 0;
  absl::Status status_;
  std::atomic<bool> refused_{false};
};

// Sees the end of a process while another thread waits for something else.
class EndWatch {
 public:
  EndWatch(pid_t pid, const std::function<void()>& on_end) : wake_(eventfd(0, EFD_CLOEXEC)) {
    auto process = OpenPidfd(pid);
    if (!on_end || !process.ok() || !wake_.valid()) return;
    thread_ = std::thread([this, process = *std::move(process), on_end] {
      pollfd wait[] = {{process.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      while (poll(wait, 2, -1) < 0) {
      }
      if (wait[0].revents != 0) on_end();
    });
  }
  ~EndWatch() {
    const uint64_t one = 1;
    while (thread_.joinable() && write(wake_.get(), &one, sizeof one) < 0) {
    }
    if (thread_.joinable()) thread_.join();
  }
  EndWatch(const EndWatch&) = delete;
  EndWatch& operator=(const EndWatch&) = delete;

 private:
  const UniqueFd wake_;
  std::thread thread_;
};

std::vector<std::string> InOne(const std::string& cgroup) {
  return cgroup.empty() ? std::vector<std::string>() : std::vector<std::string>{cgroup};
}

// What deploy/criu-files-as-user.patch reads.
constexpr char kFilesAs[] = "CRIU_FILES_AS", kAppendedChecked[] = "CRIU_APPENDED_CHECKED",
               kHold[] = "CRIU_HOLD_CGROUP", kTemporary[] = "CRIU_TEMPORARY", kLeaveOut[] = "CRIU_LEAVE_OUT",
               kUserfaultfd[] = "CRIU_USERFAULTFD", kKnownAreas[] = "CRIU_KNOWN_AREAS";

// What a dump hands over: first the socket, and then the files of known areas.
std::vector<int> HandedOver(const CriuDump& dump, int socket) {
  std::vector<int> files = {socket};
  for (const auto& [pid, file] : dump.known_areas) files.push_back(file);
  return files;
}

CriuSettings SettingsOf(const CriuDump& dump) {
  std::vector<std::string> areas;
  for (const auto& [pid, file] : dump.known_areas)
    areas.push_back(absl::StrCat(Swrk::kFirstHandedOver + 1 + static_cast<int>(areas.size()), ":", pid));
  const std::string track =
      dump.to_track.empty() ? ""
                            : absl::StrCat(Swrk::kFirstHandedOver, ":", absl::StrJoin(dump.to_track, ","));
  return {{kFilesAs, ""},
          {kAppendedChecked, ""},
          {kHold, dump.hold},
          {kTemporary, ""},
          {kLeaveOut, absl::StrJoin(dump.left_out, ",")},
          {kUserfaultfd, track},
          {kKnownAreas, absl::StrJoin(areas, ",")}};
}

CriuSettings SettingsOf(const CriuRestore& restore) {
  const Account& user = restore.files_as;
  const std::string groups = absl::StrJoin(user.groups, ",");
  const std::string as = absl::StrCat(user.uid, ":", user.gid, groups.empty() ? "" : ",", groups);
  return {{kFilesAs, user.uid == 0 ? "" : as},
          {kAppendedChecked, restore.appended_are_checked ? "1" : ""},
          {kHold, ""},
          {kTemporary, restore.temporary},
          {kLeaveOut, ""},
          {kUserfaultfd, ""},
          {kKnownAreas, ""}};
}

class SwrkCriu final : public Criu {
 public:
  explicit SwrkCriu(std::string path) : path_(std::move(path)) {}

  absl::StatusOr<CriuTraits> Check() override {
    criu::Request request;
    request.set_type(criu::VERSION);
    request.set_keep_open(true);
    SIDING_ASSIGN_OR_RETURN(Swrk swrk, Swrk::Start(path_, {}, {}));
    SIDING_ASSIGN_OR_RETURN(const auto version, swrk.Call(request));
    if (!version.success()) return absl::UnavailableError("criu does not tell its version");
    request.set_type(criu::CHECK);
    request.set_keep_open(false);
    auto check = swrk.Call(request);
    if (!check.ok()) return check.status();
    if (!check->success()) return absl::UnavailableError("criu check fails: " + check->cr_errmsg());
    const criu::Version& is = version.version();
    return CriuTraits{absl::StrCat(is.major_number(), ".", is.minor_number(),
                                   is.sublevel() == 0 ? "" : absl::StrCat(".", is.sublevel())),
                      is.name() == kActsOnFilesAsUser,
                      is.name() != kActsOnFilesAsUser && absl::StartsWith(is.name(), kActsAsUserSomehow)};
  }

  absl::Status Dump(const CriuDump& dump,
                    const std::function<absl::Status(const StillHeld&)>& post_dump) override {
    SIDING_ASSIGN_OR_RETURN(const UniqueFd images, OpenFolder(dump.image_folder));
    SIDING_ASSIGN_OR_RETURN(const UniqueFd work, OpenFolder(dump.work_folder));
    criu::Request request;
    request.set_type(criu::DUMP);
    criu::Options& options = *request.mutable_opts();
    SetCommon(options, images.get(), work.get(), dump.user, kDumpLog);
    options.add_external(kAllMountsExternal);
    if (dump.own_network) {
      SIDING_ASSIGN_OR_RETURN(const ino_t network, NetworkOf(dump.pid));
      options.add_external(absl::StrCat("net[", network, "]:", kOwnNetwork));
    }
    options.set_pid(dump.pid);
    options.set_leave_running(dump.keep_running);
    // Not by iptables, whose rules stay when CRIU is killed.
    options.set_network_lock(dump.skip_network_lock ? criu::SKIP : criu::NFTABLES);
    // A removed file that has another name elsewhere: the extra link may only stay behind if the process
    // ends. It is made by a name, as root.
    options.set_link_remap(!dump.keep_running && dump.user.uid == 0);
    options.set_ghost_limit(kGhostLimit);

    unlink((dump.work_folder + "/" + kDumpLog).c_str());
    absl::Status decision = absl::OkStatus();
    bool asked = false;
    absl::StatusOr<criu::Response> response = absl::UnknownError("");
    SIDING_ASSIGN_OR_RETURN(const GivenDescriptors given, GivenDescriptors::Open());
    {
      SIDING_ASSIGN_OR_RETURN(
          Swrk swrk, Swrk::Start(path_, dump.user, InOne(dump.cgroup), HandedOver(dump, given.theirs()),
                                 SettingsOf(dump), Swrk::For::kDump));
      const EndWatch watch(swrk.pid(), dump.on_end);
      const CriuOfThisThread criu(swrk.pid());
      SIDING_RETURN_IF_ERROR(FaultAtCriu<"criu.dump: criu is about to be told to dump">());
      const auto on_notify = [&](const criu::Notification& notification) {
        // After a no it goes on to say what it undoes.
        if (decision.ok()) decision = FaultAtCriu<"criu.dump.step: criu has got to a step of the dump">();
        if (!decision.ok()) return false;
        if (notification.script() == "pre-dump" && dump.on_ready)
          decision = dump.on_ready([&swrk] { return swrk.Running(); });
        if (notification.script() == "network-lock" && dump.on_stopped)
          decision = dump.on_stopped([&swrk] { return swrk.Running(); });
        if (!decision.ok()) return false;
        if (notification.script() != "post-dump") return true;
        asked = true;
        given.Take(dump.on_userfaultfd);
        decision = post_dump([&swrk] { return swrk.Running(); });
        return decision.ok();
      };
      response = swrk.Call(request, on_notify, dump.abandon, kDumpUndoPatience);
    }
    if (!decision.ok()) return decision;
    if (response.ok() && response->success() && asked) return absl::OkStatus();
    return Explain(Of::kDump, dump.work_folder + "/" + kDumpLog, response);
  }

  absl::StatusOr<pid_t> Restore(const CriuRestore& restore) override {
    SIDING_ASSIGN_OR_RETURN(const UniqueFd images, OpenFolder(restore.image_folder));
    SIDING_ASSIGN_OR_RETURN(const UniqueFd work, OpenFolder(restore.work_folder));
    criu::Request request;
    request.set_type(criu::RESTORE);
    criu::Options& options = *request.mutable_opts();
    SetCommon(options, images.get(), work.get(), restore.user, kRestoreLog);
    options.add_external(kAllMountsExternal);
    options.set_root("/");
    options.set_rst_sibling(true);
    std::vector<int> handed_over;
    for (const CriuInherited& inherited : restore.inherited) {
      criu::InheritFd& entry = *options.add_inherit_fd();
      entry.set_key(inherited.key);
      entry.set_fd(Swrk::kFirstHandedOver + static_cast<int>(handed_over.size()));
      handed_over.push_back(inherited.fd);
    }
    unlink((restore.work_folder + "/" + kRestoreLog).c_str());
    SIDING_ASSIGN_OR_RETURN(
        Swrk swrk, Swrk::Start(path_, restore.user, restore.cgroups, handed_over, SettingsOf(restore)));
    const CriuOfThisThread criu(swrk.pid());
    SIDING_RETURN_IF_ERROR(FaultAtCriu<"criu.restore: criu is about to be told to restore">());
    Verdict verdict(restore);
    const auto hear = [&](const criu::Notification& notice) {
      return FaultAtCriu<"criu.restore.step: criu has got to a step of the restore">().ok() &&
             verdict.Hear(notice);
    };
    auto response = swrk.Call(request, hear, verdict.refused());
    if (!verdict.status().ok()) return verdict.status();
    if (response.ok() && response->success()) return response->restore().pid();
    return Explain(Of::kRestore, restore.work_folder + "/" + kRestoreLog, response);
  }

 private:
  static void SetCommon(criu::Options& options, int images, int work, const CriuUser& user, const char* log) {
    options.set_images_dir_fd(images);
    options.set_work_dir_fd(work);
    options.set_log_file(log);
    options.set_log_level(2);
    options.set_notify_scripts(true);
    options.set_manage_cgroups(true);
    options.set_manage_cgroups_mode(criu::IGNORE);
    options.set_tcp_established(true);
    options.set_file_locks(true);
    options.set_ext_unix_sk(false);
    if (user.as_user) options.set_unprivileged(true);
  }

  const std::string path_;
};

}  // namespace

std::unique_ptr<Criu> NewCriu(const std::string& path) { return std::make_unique<SwrkCriu>(path); }

absl::StatusOr<std::string> FindCriu(const std::string& configured) {
  if (!configured.empty()) {
    if (access(configured.c_str(), X_OK) != 0) return ErrnoError(errno, configured);
    return configured;
  }
  if (const char* named = std::getenv("SIDING_CRIU"); named != nullptr && *named != '\0')
    return FindCriu(named);
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string packaged = program.parent_path().parent_path() / "lib" / "siding" / "criu";
  for (const std::string& file : {packaged, std::string(kBuilt)}) {
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  const char* const folders = std::getenv("PATH");
  std::istringstream path(folders == nullptr ? "" : folders);
  for (std::string folder; std::getline(path, folder, ':');) {
    if (const std::string file = folder + "/criu"; access(file.c_str(), X_OK) == 0) return file;
  }
  return absl::NotFoundError(
      absl::StrCat("there is no criu: not in $SIDING_CRIU, ", packaged, ", ", kBuilt, " or $PATH"));
}

bool HasRestored(const std::string& work_folder) {
  return access((work_folder + "/" + kRestoreLog).c_str(), F_OK) == 0;
}

void RemoveTemporary(const std::string& begins) {
  for (const std::string& name : ListFolder(kTemporaryFolder).value_or(std::vector<std::string>())) {
    if (!absl::StartsWith(name, absl::StrCat(kTemporaryKind, begins))) continue;
    const std::string path = absl::StrCat(kTemporaryFolder, "/", name);
    struct stat info = {};
    // Anybody can make names in there.
    if (lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == 0) rmdir(path.c_str());
  }
}

std::string WhyOnlyForRoot(const CriuTraits& traits) {
  if (traits.acts_on_files_as_user) return "";
  return traits.of_another_siding
             ? "was built for another version of siding; get-criu builds one for this one"
             : "would act on its user's files as root; get-criu builds one that acts as "
               "the user";
}

absl::Status PassingError(const std::string& why) {
  absl::Status status = absl::InternalError(why);
  status.SetPayload(kPasses, absl::Cord());
  return status;
}

bool PassesByItself(const absl::Status& status) { return status.GetPayload(kPasses).has_value(); }

absl::Status RefusalError(const std::string& why) {
  absl::Status status = absl::InternalError(why);
  status.SetPayload(kRefused, absl::Cord());
  return status;
}

bool IsRefusal(const absl::Status& status) { return status.GetPayload(kRefused).has_value(); }

bool LacksAFile(const absl::Status& status) { return status.GetPayload(kLacksAFile).has_value(); }

bool CriuMustRunAsUser() {
  auto status = ReadFile("/proc/self/status");
  if (!status.ok()) return false;
  const size_t at = status->find("CapEff:");
  if (at == std::string::npos) return false;
  const uint64_t effective = std::strtoull(status->c_str() + at + 7, nullptr, 16);
  return (effective >> CAP_SYS_RESOURCE & 1) == 0;
}

}  // namespace siding
