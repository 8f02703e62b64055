#include "common/munge/munge.h"

#include <dlfcn.h>
#include <munge.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace siding {
namespace {

constexpr char kLibrary[] = "libmunge.so.2";

// The functions of libmunge that are used here, by their names there.
struct Library {
  decltype(&munge_encode) encode = nullptr;
  decltype(&munge_decode) decode = nullptr;
  decltype(&munge_ctx_create) create = nullptr;
  decltype(&munge_ctx_destroy) destroy = nullptr;
  decltype(&munge_ctx_set) set = nullptr;
  decltype(&munge_ctx_get) get = nullptr;
  decltype(&munge_ctx_strerror) context_error = nullptr;
  decltype(&munge_strerror) error = nullptr;
};

absl::StatusOr<Library> Load() {
  void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::UnavailableError(absl::StrCat("MUNGE: ", dlerror()));
  Library library;
  const auto find = [handle](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    return function != nullptr;
  };
  if (find(library.encode, "munge_encode") && find(library.decode, "munge_decode") &&
      find(library.create, "munge_ctx_create") && find(library.destroy, "munge_ctx_destroy") &&
      find(library.set, "munge_ctx_set") && find(library.get, "munge_ctx_get") &&
      find(library.context_error, "munge_ctx_strerror") && find(library.error, "munge_strerror")) {
    return library;
  }
  return absl::UnavailableError(absl::StrCat("MUNGE: ", kLibrary, " lacks functions that are needed"));
}

// Once: a library that is installed later is found after a restart.
const absl::StatusOr<Library>& TheLibrary() {
  static const absl::StatusOr<Library> library = Load();
  return library;
}

// One conversation with munged. Contexts are not thread-safe, so each call has its own.
class Context {
 public:
  Context(const Library& library, const std::string& socket) : library_(library), context_(library.create()) {
    if (!socket.empty()) library_.set(context_, MUNGE_OPT_SOCKET, socket.c_str());
  }
  ~Context() { library_.destroy(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  munge_ctx_t get() const { return context_; }
  std::string ErrorText(munge_err_t error) const {
    const char* details = library_.context_error(context_);
    return absl::StrCat("MUNGE: ", details != nullptr ? details : library_.error(error));
  }

 private:
  const Library& library_;
  const munge_ctx_t context_;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

bool SaysNothingOfTheCredential(munge_err_t error) {
  return error == EMUNGE_SNAFU || error == EMUNGE_NO_MEMORY || error == EMUNGE_SOCKET;
}

}  // namespace

std::string MungePayload(const std::string& method) { return absl::StrCat("siding.v1.Siding/", method); }

absl::StatusOr<std::string> MungeEncode(const std::string& payload, const std::string& socket) {
  if (!TheLibrary().ok()) return TheLibrary().status();
  const Library& library = *TheLibrary();
  const Context context(library, socket);
  char* made = nullptr;
  const munge_err_t error =
      library.encode(&made, context.get(), payload.data(), static_cast<int>(payload.size()));
  const std::unique_ptr<char, Free> owner(made);
  if (error != EMUNGE_SUCCESS) return absl::UnavailableError(context.ErrorText(error));
  return std::string(made);
}

absl::StatusOr<MungeDecoded> MungeDecode(const std::string& credential, const std::string& socket) {
  if (!TheLibrary().ok()) return TheLibrary().status();
  const Library& library = *TheLibrary();
  const Context context(library, socket);
  void* payload = nullptr;
  int size = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  const munge_err_t error = library.decode(credential.c_str(), context.get(), &payload, &size, &uid, &gid);
  const std::unique_ptr<void, Free> owner(payload);  // there even if the credential is not good any more
  if (SaysNothingOfTheCredential(error)) return absl::UnavailableError(context.ErrorText(error));
  if (error != EMUNGE_SUCCESS) return absl::UnauthenticatedError(context.ErrorText(error));
  time_t encoded = 0;
  int good_for = 0;  // seconds
  library.get(context.get(), MUNGE_OPT_ENCODE_TIME, &encoded);
  library.get(context.get(), MUNGE_OPT_TTL, &good_for);
  return MungeDecoded{uid, gid, std::string(static_cast<const char*>(payload), static_cast<size_t>(size)),
                      Time(std::chrono::seconds(encoded) + std::chrono::seconds(good_for + 1))};
}

}  // namespace siding
