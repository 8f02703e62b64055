// certs init|controller|node|user|revoke: makes certificates, and takes them back; needs no controller.
// docs/admin/security.md.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "cli/verbs/verbs.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/status.h"
#include "common/tls/authority.h"

namespace siding::cli {
namespace {

using Kind = CertificateName::Kind;

constexpr int kKeyMode = 0600;
constexpr char kAuthority[] = "ca";
constexpr char kRevoked[] = "/revoked.pem";
constexpr char kIssued[] =
    "/issued";  // of the folder: a copy of each certificate, for when it is to be revoked
constexpr char kAuthorityLifetime[] = "3650d";
constexpr char kLifetime[] = "90d";

struct CertFlags {
  std::string folder = ".";  // of the authority; certificates come into it as well
  std::string lifetime;
  std::string name;
  std::vector<std::string> hosts;
  std::vector<std::string> revoked;  // names of files without .pem, or paths
  bool force = false;
  bool renew = false;
};

struct Paths {
  std::string certificate;
  std::string key;
};

Paths PathsOf(const CertFlags& flags, const std::string& name) {
  const std::string base = absl::StrCat(flags.folder, "/", name);
  return {base + ".pem", base + ".key"};
}

absl::StatusOr<Duration> LifetimeOf(const CertFlags& flags) {
  const auto lifetime = ParseDuration(flags.lifetime);
  if (!lifetime.ok()) return Annotate(lifetime.status(), "--lifetime");
  return *lifetime;
}

absl::StatusOr<std::string> Read(const std::string& path) {
  auto text = ReadFile(path);
  if (absl::IsNotFound(text.status())) {
    return Annotate(text.status(), "is this the folder of `sidingctl certs init`?");
  }
  return text;
}

absl::StatusOr<Issued> ReadAuthority(const CertFlags& flags) {
  const Paths paths = PathsOf(flags, kAuthority);
  Issued authority;
  SIDING_ASSIGN_OR_RETURN(authority.certificate, Read(paths.certificate));
  SIDING_ASSIGN_OR_RETURN(authority.key, Read(paths.key));
  return authority;
}

absl::Status MayWrite(const Paths& paths, const CertFlags& flags) {
  for (const std::string& path : {paths.certificate, paths.key}) {
    struct stat there {};
    if (!flags.force && lstat(path.c_str(), &there) == 0) {
      return absl::AlreadyExistsError(absl::StrCat(path, " is there already; --force replaces it"));
    }
  }
  return absl::OkStatus();
}

// The key first: a certificate without its key is of no use. A renewal leaves the key as it is, so that
// a reader of both always finds two that match.
absl::Status Write(const Issued& issued, const Paths& paths, bool with_key) {
  if (with_key) SIDING_RETURN_IF_ERROR(WriteFileDurably(paths.key, issued.key, kKeyMode));
  return WriteFileDurably(paths.certificate, issued.certificate);
}

void Say(const Session& session, const Paths& paths) {
  if (session.json) {
    std::cout << nlohmann::json{{"certificate", paths.certificate}, {"key", paths.key}}.dump(2) << "\n";
  } else {
    std::cout << paths.certificate << "\n" << paths.key << "\n";
  }
}

// Of several administrators one at a time changes the list.
absl::StatusOr<UniqueFd> LockFolder(const CertFlags& flags) {
  UniqueFd folder(open(flags.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() || flock(folder.get(), LOCK_EX) != 0) return ErrnoError(errno, "lock " + flags.folder);
  return folder;
}

// NAME-SERIAL.pem.
absl::Status KeepCopy(const CertFlags& flags, const std::string& name, const Issued& issued) {
  const std::string folder = flags.folder + kIssued;
  SIDING_RETURN_IF_ERROR(MakeDirectories(folder, 0700));
  SIDING_ASSIGN_OR_RETURN(const std::string serial, SerialOf(issued.certificate));
  return WriteFileDurably(absl::StrCat(folder, "/", name, "-", serial, ".pem"), issued.certificate);
}

absl::Status WriteList(const CertFlags& flags, const Issued& authority,
                       const std::vector<std::string>& certificates) {
  const std::string path = flags.folder + kRevoked;
  std::string last;
  if (auto text = ReadFile(path); text.ok()) {
    last = *std::move(text);
  } else if (!absl::IsNotFound(text.status())) {
    return text.status();
  }
  const auto list = siding::Revoke(authority, last, certificates, SystemClock().Now());
  if (!list.ok()) return Annotate(list.status(), path);
  return WriteFileDurably(path, *list);
}

absl::StatusOr<int> Init(const Session& session, const CertFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(const Duration lifetime, LifetimeOf(flags));
  SIDING_RETURN_IF_ERROR(MakeDirectories(flags.folder, 0700));
  const Paths paths = PathsOf(flags, kAuthority);
  SIDING_RETURN_IF_ERROR(MayWrite(paths, flags));
  SIDING_ASSIGN_OR_RETURN(const Issued authority, MakeAuthority(lifetime, SystemClock().Now()));
  SIDING_RETURN_IF_ERROR(Write(authority, paths, true));
  // Whoever believes the authority of before needs its list still.
  const std::string list = flags.folder + kRevoked;
  if (std::filesystem::exists(list)) {
    const std::string aside = absl::StrCat(list, ".", ToMicros(SystemClock().Now()) / 1'000'000);
    if (rename(list.c_str(), aside.c_str()) != 0) return ErrnoError(errno, aside);
  }
  SIDING_RETURN_IF_ERROR(WriteList(flags, authority, {}));
  Say(session, paths);
  return 0;
}

// All that this authority has issued under that name, with whatever key.
absl::StatusOr<std::vector<std::string>> CertificatesOf(const CertFlags& flags, const Issued& authority,
                                                        const std::string& name) {
  std::vector<std::string> paths;
  std::error_code error;
  if (const std::string newest = PathsOf(flags, name).certificate; std::filesystem::exists(newest, error))
    paths.push_back(newest);
  std::filesystem::directory_iterator file(flags.folder + kIssued, error), end;
  for (; !error && file != end; file.increment(error)) {
    const std::string found = file->path().stem();
    if (file->path().extension() == ".pem" && found.substr(0, found.rfind('-')) == name)
      paths.push_back(file->path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return ErrnoError(error.value(), flags.folder + kIssued);
  std::vector<std::string> certificates;
  for (const std::string& path : paths) {
    SIDING_ASSIGN_OR_RETURN(std::string certificate, ReadFile(path));
    // The folder may have had another authority before. What is no certificate lets nobody in.
    const auto its_own = IsIssuedBy(authority, certificate);
    if (its_own.value_or(false)) certificates.push_back(std::move(certificate));
  }
  return certificates;
}

absl::StatusOr<std::vector<std::string>> CertificatesToRevoke(const CertFlags& flags, const Issued& authority,
                                                              const std::string& name) {
  if (name.find('/') != std::string::npos) {
    SIDING_ASSIGN_OR_RETURN(std::string certificate, ReadFile(name));
    return std::vector<std::string>{std::move(certificate)};
  }
  SIDING_ASSIGN_OR_RETURN(std::vector<std::string> found, CertificatesOf(flags, authority, name));
  if (!found.empty()) return found;
  return absl::NotFoundError(absl::StrCat("'", name, "': this authority has no certificate of that name in ",
                                          flags.folder, " or ", flags.folder, kIssued,
                                          "; a file is given by its path"));
}

absl::StatusOr<int> Revoke(const Session& session, const CertFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(const UniqueFd lock, LockFolder(flags));
  SIDING_ASSIGN_OR_RETURN(const Issued authority, ReadAuthority(flags));
  std::vector<std::string> certificates;
  for (const std::string& name : flags.revoked) {
    SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> its, CertificatesToRevoke(flags, authority, name));
    certificates.insert(certificates.end(), its.begin(), its.end());
  }
  SIDING_RETURN_IF_ERROR(WriteList(flags, authority, certificates));
  std::set<std::string> serials;
  for (const std::string& certificate : certificates) serials.insert(*SerialOf(certificate));
  const std::string path = flags.folder + kRevoked;
  if (session.json)
    std::cout << nlohmann::json{{"revoked", path}, {"serials", serials}}.dump(2) << "\n";
  else
    std::cout << path << "\n" << serials.size() << " revoked\n";
  return 0;
}

// Who has stolen it would have a good certificate again.
absl::Status CheckKeyIsGood(const CertFlags& flags, const std::string& name, const std::string& key) {
  const auto list = ReadFile(flags.folder + kRevoked);
  if (absl::IsNotFound(list.status())) return absl::OkStatus();
  SIDING_RETURN_IF_ERROR(list.status());
  SIDING_ASSIGN_OR_RETURN(const Issued authority, ReadAuthority(flags));
  SIDING_ASSIGN_OR_RETURN(const std::vector<std::string> issued, CertificatesOf(flags, authority, name));
  SIDING_ASSIGN_OR_RETURN(const bool revoked, IsRevokedKey(key, issued, *list));
  if (!revoked) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("a certificate of ", PathsOf(flags, name).key,
                                                    " has been revoked; --force makes another key"));
}

// `issue` makes the certificate, given the authority, the lifetime and the key that there is already.
using Issue = std::function<absl::StatusOr<Issued>(const Issued&, Duration, const std::string& key)>;

absl::StatusOr<int> Make(const Session& session, const CertFlags& flags, const std::string& name,
                         const Issue& issue) {
  SIDING_ASSIGN_OR_RETURN(const Duration lifetime, LifetimeOf(flags));
  const Paths paths = PathsOf(flags, name);
  std::string key;
  if (flags.renew) {
    SIDING_ASSIGN_OR_RETURN(key, ReadFile(paths.key));
    SIDING_RETURN_IF_ERROR(CheckKeyIsGood(flags, name, key));
  } else {
    SIDING_RETURN_IF_ERROR(MayWrite(paths, flags));
  }
  SIDING_ASSIGN_OR_RETURN(const Issued authority, ReadAuthority(flags));
  const auto issued = issue(authority, lifetime, key);
  if (!issued.ok()) return Annotate(issued.status(), flags.folder);
  SIDING_RETURN_IF_ERROR(KeepCopy(flags, name, *issued));
  SIDING_RETURN_IF_ERROR(Write(*issued, paths, !flags.renew));
  Say(session, paths);
  return 0;
}

absl::StatusOr<int> ForHolder(const Session& session, const CertFlags& flags, Kind kind) {
  const CertificateName holder{kind, flags.name};
  SIDING_RETURN_IF_ERROR(CheckName(holder.name));  // before it becomes part of a path
  return Make(session, flags, absl::StrCat(ToString(kind), "-", flags.name),
              [&holder](const Issued& authority, Duration lifetime, const std::string& key) {
                return IssueFor(holder, authority, lifetime, SystemClock().Now(), key);
              });
}

absl::StatusOr<int> ForController(const Session& session, const CertFlags& flags) {
  return Make(session, flags, "controller",
              [&flags](const Issued& authority, Duration lifetime, const std::string& key) {
                return IssueForHosts(flags.hosts, authority, lifetime, SystemClock().Now(), key);
              });
}

CLI::App& AddVerb(CLI::App& certs, const std::string& name, const std::string& text,
                  const std::shared_ptr<CertFlags>& flags) {
  CLI::App& verb = *certs.add_subcommand(name, text);
  verb.add_flag("--force", flags->force, "replace existing files");
  return verb;
}

// A verb that makes a certificate with the authority there is.
CLI::App& AddIssuing(CLI::App& certs, const std::string& name, const std::string& text,
                     const std::shared_ptr<CertFlags>& flags) {
  CLI::App& verb = AddVerb(certs, name, text, flags);
  flags->lifetime = kLifetime;
  verb.add_option("--lifetime", flags->lifetime, "how long it is valid, such as 30d")->capture_default_str();
  verb.add_option("--folder", flags->folder, "the authority's folder")->capture_default_str();
  verb.add_flag("--renew", flags->renew, "make a new certificate for the existing key");
  return verb;
}

void AddHolder(CLI::App& certs, Session& session, Kind kind, const std::string& text,
               const std::string& name_text) {
  const auto flags = std::make_shared<CertFlags>();
  CLI::App& verb = AddIssuing(certs, ToString(kind), text, flags);
  verb.add_option("name", flags->name, name_text)->required();
  verb.callback([&session, flags, kind] {
    session.run = [&session, flags, kind] { return ForHolder(session, *flags, kind); };
  });
}

}  // namespace

void AddCerts(CLI::App& app, Session& session) {
  CLI::App& certs =
      *app.add_subcommand("certs", "make certificates for a site that has no authority of its own");
  certs.require_subcommand(1);

  const auto init = std::make_shared<CertFlags>();
  init->lifetime = kAuthorityLifetime;
  CLI::App& first =
      AddVerb(certs, "init", "an authority: FOLDER/ca.pem, which all may read, and its key", init);
  first.add_option("--lifetime", init->lifetime, "how long it is valid")->capture_default_str();
  first.add_option("folder", init->folder, "made if it is not there")->required();
  first.callback([&session, init] { session.run = [&session, init] { return Init(session, *init); }; });

  const auto controller = std::make_shared<CertFlags>();
  CLI::App& server = AddIssuing(certs, "controller", "a certificate for the controller", controller);
  server.add_option("hosts", controller->hosts, "host names and addresses under which it is reached")
      ->required();
  server.callback([&session, controller] {
    session.run = [&session, controller] { return ForController(session, *controller); };
  });

  AddHolder(certs, session, Kind::kNode, "a certificate for a node's agent", "the agent's --node");
  AddHolder(certs, session, Kind::kUser, "a certificate for a remote user",
            "the user's account on the controller's machine");

  const auto revoke = std::make_shared<CertFlags>();
  CLI::App& taking_back = *certs.add_subcommand(
      "revoke",
      "take certificates back: FOLDER/revoked.pem, for --tls-revoked of sidingd and --revoked of agents");
  taking_back.add_option(
      "names", revoke->revoked,
      "as their files are called, such as node-n1: all that were issued under that name; or the path of "
      "one; none: the list is only made again");
  taking_back.add_option("--folder", revoke->folder, "the authority's folder")->capture_default_str();
  taking_back.callback(
      [&session, revoke] { session.run = [&session, revoke] { return Revoke(session, *revoke); }; });
}

}  // namespace siding::cli
