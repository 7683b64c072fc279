// Adds flags whose text is parsed.
#include "tools/flags/choice.h"

#include "sim/ir/error.h"

namespace bubblescope::tools {

namespace {

using Read = std::function<void(const std::string&)>;

Read naming_errors(const std::string& names, Read read) {
  return [name = names.substr(0, names.find(',')), read = std::move(read)](
             const std::string& text) { name_errors(name, [&] { read(text); }); };
}

}  // namespace

void name_errors(const std::string& flag, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(flag + ": " + error.what());
  }
}

CommandFlag* add_parsed(CommandFlags& app, Flag flag, Read read) {
  read = naming_errors(flag.name, std::move(read));
  return app.add_parsed(std::move(flag.name), std::move(read), std::move(flag.help))
      ->type_name(std::move(flag.type));
}

void add_repeated(CommandFlags& app, Flag flag, Read read) {
  auto read_all = [read_one = naming_errors(flag.name, std::move(read))](const auto& texts) {
    for (const std::string& text : texts) read_one(text);
  };
  app.add_parsed_list(std::move(flag.name), std::move(read_all), std::move(flag.help))
      ->type_name(std::move(flag.type));
}

}  // namespace bubblescope::tools
