// Adds flags whose text is parsed.
#include "tools/flags/choice.h"

#include "sim/ir/error.h"

namespace bubblescope::tools {

namespace {

std::function<void(const std::string&)> naming_errors(
    const std::string& name, const std::function<void(const std::string&)>& read) {
  return [name, read](const std::string& text) {
    name_errors(name.substr(0, name.find(',')), [&] { read(text); });
  };
}

}  // namespace

void name_errors(const std::string& flag, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(flag + ": " + error.what());
  }
}

CommandFlag* add_parsed(CommandFlags& app, const Flag& flag,
                        const std::function<void(const std::string&)>& read) {
  return app.add_parsed(flag.name, naming_errors(flag.name, read), flag.help)->type_name(flag.type);
}

void add_repeated(CommandFlags& app, const Flag& flag,
                  const std::function<void(const std::string&)>& read) {
  const auto read_all = [read_one = naming_errors(flag.name, read)](const auto& texts) {
    for (const std::string& text : texts) read_one(text);
  };
  app.add_parsed_list(flag.name, read_all, flag.help)->type_name(flag.type);
}

}  // namespace bubblescope::tools
