// CRIU behind an interface: what is asked of it, without how it is run.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agent/os/account.h"
#include "common/files.h"
#include "common/units.h"

namespace siding {

// The user as which CRIU runs. As root it can dump all processes only where root has CAP_SYS_RESOURCE (often
// not so in containers); as the job's own user with ambient capabilities it always can.
struct CriuUser {
  bool as_user = false;
  uid_t uid = 0;
  gid_t gid = 0;
};

struct CriuDump {
  pid_t pid = 0;             // root of the tree: the task's init
  std::string image_folder;  // must exist
  std::string work_folder;   // gets the log
  std::string cgroup;        // folder that CRIU joins; may be empty
  bool keep_running = false;
  bool skip_network_lock = false;  // packets need not be kept from it, or others see to that
  // The tree has a network namespace of its own, which is not in the image: a restore is given another, with
  // kOwnNetwork as its key.
  bool own_network = false;
  // Of cgroup v2, with all of the tree in it; may be empty. CRIU freezes it before it puts connections into
  // repair mode, and thaws it when it lets go of the processes: see EndHold() for a CRIU that is ended
  // between.
  std::string hold;
  CriuUser user;
  // Set from another thread to stop CRIU: it is asked to undo what it has begun, and ended by force if it
  // does not within ten seconds. After the latter its sockets may need EndRepair(), and then its processes
  // EndHold().
  const std::atomic<bool>* abandon = nullptr;
  // Called on another thread as soon as CRIU has ended, however it did; not after Dump() has returned.
  std::function<void()> on_end;
  // Asked when CRIU has started and stops the processes next; an error ends the dump with it. `running` is
  // not OK once CRIU has ended. May be empty.
  std::function<absl::Status(const std::function<absl::Status()>& running)> on_ready;
  // Asked when all processes are stopped and nothing has been written; an error ends the dump with it. May be
  // empty; not asked by a criu that does not act on files as the user.
  std::function<absl::Status(const std::function<absl::Status()>& held)> on_stopped;
  // Processes of which the pages of private anonymous memory are not written: their pagemaps say "in the
  // parent" of these areas, which the caller has to fill. Only for CriuKind::kOurs, as the next.
  std::vector<pid_t> left_out;
  // Files that have, when on_ready() has returned, the mappings of processes with their flags (AreasOf() in
  // known_areas.h): CRIU does not ask the kernel for those whose mappings are the same still. Only for
  // CriuKind::kOurs.
  std::map<pid_t, int> known_areas;
  // Processes that are to make a userfaultfd and give it; 64 at most.
  std::vector<pid_t> to_track;
  // Called before `post_dump` with each that was given. It may be another descriptor, where a process cannot
  // make one.
  std::function<void(pid_t pid, UniqueFd userfaultfd)> on_userfaultfd;
};

inline constexpr char kOwnNetwork[] = "own-network";

// A descriptor of the caller's that takes the place of one that the image cannot hold, such as "pipe:[4711]".
struct CriuInherited {
  std::string key;
  int fd = -1;
};

struct CriuRestore {
  std::string image_folder;
  std::string work_folder;
  std::vector<std::string> cgroups;  // folders that CRIU, and so the restored processes, join
  CriuUser user;
  // With whose rights files that the job's user has named are opened and made, where CRIU can do so. Root:
  // with CRIU's own.
  Account files_as;
  // Files that were opened with O_APPEND have been looked at: they may have any length and permissions.
  bool appended_are_checked = false;
  // In the name of its folder in /tmp, where CRIU can do so; see RemoveTemporary(). May be empty.
  std::string temporary;
  std::vector<CriuInherited> inherited;
  // Asked when all is restored, and connections neither send nor take anything yet: not OK as below. May be
  // empty, as the next.
  std::function<absl::Status(pid_t init)> may_connect;
  // Asked when all is restored, before the first instruction: not OK ends the processes, and the restore
  // fails with that.
  std::function<absl::Status(pid_t init)> may_resume;
};

// kUnavailable once CRIU has ended, which lets go of the processes: they run.
using StillHeld = std::function<absl::Status()>;

// What it keeps of the kernel's state: one with deploy/criu-files-as-user.patch of this version keeps more
// (personalities, eventfds that count as semaphores).
enum class CriuKind { kAny, kOurs };

struct CriuTraits {
  std::string version;  // "4.2.1"
  // It knows CriuRestore::files_as and appended_are_checked: it was built with
  // deploy/criu-files-as-user.patch.
  bool acts_on_files_as_user = false;
  // Else: it was built with that patch of another version of siding.
  bool of_another_siding = false;

  CriuKind kind() const { return acts_on_files_as_user ? CriuKind::kOurs : CriuKind::kAny; }
};

// What is wrong with it for the tasks of other users than root; empty: nothing. Follows on its name.
std::string WhyOnlyForRoot(const CriuTraits& traits);

// The CRIU that is to dump a tree, as far as that decides what can be dumped.
struct DumpingCriu {
  CriuKind kind = CriuKind::kAny;
  // Without CAP_SYS_RESOURCE the kernel lets it read the limits (prlimit) of those processes only whose user
  // and group, real, effective and saved, are all its own: these. nullopt: of all.
  struct Ids {
    uid_t uid = 0;
    gid_t gid = 0;
  };
  std::optional<Ids> only_of;
};

// Thread-safe.
class Criu {
 public:
  virtual ~Criu() = default;
  // What it is, if it works on this machine.
  virtual absl::StatusOr<CriuTraits> Check() = 0;
  // `post_dump` is called with the processes frozen and the image written; if it fails, so does the dump,
  // with the same status. It asks `held` whether they are frozen still. Whenever the dump fails, the
  // processes run on. On success they are gone or, with keep_running, continue.
  virtual absl::Status Dump(const CriuDump& dump,
                            const std::function<absl::Status(const StillHeld& held)>& post_dump) = 0;
  // The pid of the restored init, which is a child of the calling process.
  virtual absl::StatusOr<pid_t> Restore(const CriuRestore& restore) = 0;
};

// Runs the program at `path`, a fresh one for each call.
std::unique_ptr<Criu> NewCriu(const std::string& path);

// `configured` if not empty, else $SIDING_CRIU, the project's own prefix, $PATH. NotFound if there is none.
absl::StatusOr<std::string> FindCriu(const std::string& configured);

// True if CRIU must run as the job's user because root lacks CAP_SYS_RESOURCE here.
bool CriuMustRunAsUser();

// A restore was begun with this folder as CriuRestore::work_folder.
bool HasRestored(const std::string& work_folder);

// Removes the folders in /tmp of restores whose CRIU was ended by force: root's own and empty ones, whose
// CriuRestore::temporary begins with this. None of these CRIUs may live. Takes as long as /tmp is.
void RemoveTemporary(const std::string& begins);

// Why CRIU did not do what it was asked for.
struct CriuRefusal {
  std::string why;      // empty: nothing is said
  bool passes = false;  // by itself, in a moment, such as a connection that waits to be accepted
  bool around = false;  // what was around CRIU may be to blame: memory, disks, ports, who ended a process
  bool file = false;    // one was not there, or may not be opened
};

// One line of a log, without time and source position, in words of this project; nullopt: not known.
std::optional<CriuRefusal> KnownRefusal(absl::string_view message);

// What a log says went wrong: the last line that is known or, where there is none, "criu: " and its last
// `Error (` lines, at most `count`. Harmless lines that CRIU writes in every run are left out.
CriuRefusal WhyCriuFailed(const std::string& log, int count = 2);

// What CRIU says went wrong is a lack of room on a file system. It does not say on which.
bool SaysFull(const std::string& why);

// A dump that failed of something that passes by itself.
absl::Status PassingError(const std::string& why);
bool PassesByItself(const absl::Status& status);

// A restore that CRIU itself has given up, and nothing that it said blames what was around it. It may say so
// of an image that no restore will ever take; once, it is no proof.
absl::Status RefusalError(const std::string& why);
bool IsRefusal(const absl::Status& status);

// A restore that lacked a file, or the right to open it. Where the processes of the image still have it, that
// is the image's fault, too.
bool LacksAFile(const absl::Status& status);

}  // namespace siding
