#include "controller/notify/open.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "common/tls/certificates.h"
#include "controller/notify/local_log.h"
#include "controller/notify/webhook.h"

namespace siding {
namespace {

absl::StatusOr<std::unique_ptr<Receiver>> Open(const ReceiverSettings& settings, const std::string& cluster,
                                               const Clock& clock) {
  if (settings.log != EventLogKind::kNone)
    return NewLocalLog(settings.log,
                       settings.log == EventLogKind::kJournald ? kJournaldSocket : kSyslogSocket);
  SIDING_ASSIGN_OR_RETURN(std::string secret, ReadSecretWord("secret", settings.secret));
  std::string authority;
  if (!settings.authority.empty()) {
    auto text = ReadFile(settings.authority);
    if (!text.ok()) return Annotate(text.status(), "ca");
    authority = *std::move(text);
    if (const auto certificates = EndOfValidity(authority); !certificates.ok())
      return Annotate(certificates.status(), "ca " + settings.authority);
  }
  SIDING_ASSIGN_OR_RETURN(HttpPost post, NewHttpPost(settings.url, authority));
  return NewWebhook(std::move(post), std::move(secret), cluster, clock);
}

}  // namespace

absl::Status CheckReceivers(const std::vector<ReceiverSettings>& receivers, const Clock& clock) {
  for (const ReceiverSettings& settings : receivers) {
    const absl::Status opened = Open(settings, "", clock).status();
    if (!opened.ok()) return Annotate(opened, absl::StrCat("events_to: ", settings.name));
  }
  return absl::OkStatus();
}

std::vector<std::unique_ptr<Notifier>> StartNotifiers(const std::vector<ReceiverSettings>& receivers,
                                                      const NotifyContext& context) {
  std::vector<std::unique_ptr<Notifier>> notifiers;
  for (const ReceiverSettings& settings : receivers) {
    NotifierOptions options{
        .name = settings.name, .file = context.folder + "/" + settings.name, .kinds = settings.kinds};
    options.open = [settings, cluster = context.cluster, &clock = context.clock] {
      return Open(settings, cluster, clock);
    };
    notifiers.push_back(std::make_unique<Notifier>(context.source, std::move(options)));
  }
  return notifiers;
}

}  // namespace siding
