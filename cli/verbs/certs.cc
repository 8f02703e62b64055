// certs init|controller|node|user: makes certificates; needs no controller. docs/admin/security.md.
#include <sys/stat.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

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
constexpr char kAuthorityLifetime[] = "3650d";
constexpr char kLifetime[] = "90d";

struct CertFlags {
  std::string folder = ".";  // of the authority; certificates come into it as well
  std::string lifetime;
  std::string name;
  std::vector<std::string> hosts;
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

absl::StatusOr<int> Init(const Session& session, const CertFlags& flags) {
  SIDING_ASSIGN_OR_RETURN(const Duration lifetime, LifetimeOf(flags));
  SIDING_RETURN_IF_ERROR(MakeDirectories(flags.folder, 0700));
  const Paths paths = PathsOf(flags, kAuthority);
  SIDING_RETURN_IF_ERROR(MayWrite(paths, flags));
  SIDING_ASSIGN_OR_RETURN(const Issued authority, MakeAuthority(lifetime, SystemClock().Now()));
  SIDING_RETURN_IF_ERROR(Write(authority, paths, true));
  Say(session, paths);
  return 0;
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
  } else {
    SIDING_RETURN_IF_ERROR(MayWrite(paths, flags));
  }
  SIDING_ASSIGN_OR_RETURN(const Issued authority, ReadAuthority(flags));
  const auto issued = issue(authority, lifetime, key);
  if (!issued.ok()) return Annotate(issued.status(), flags.folder);
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
}

}  // namespace siding::cli
