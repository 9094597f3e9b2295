// The string formats that a schema may ask for.
#include <map>

#include "grammar/json_schema.h"
#include "grammar/regex.h"

namespace exl3 {
namespace {

#define EXL3_DATE                                                                            \
    "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)" \
    "|02-(0[1-9]|1[0-9]|2[0-8])))"
#define EXL3_TIME                                                                                  \
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]" \
    ")"
#define EXL3_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define EXL3_HOST EXL3_LABEL "(\\." EXL3_LABEL "){0,10}"
#define EXL3_OCTET "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define EXL3_H16 "[0-9a-fA-F]{1,4}"

const std::map<std::string, std::string>& formats() {
    static const std::map<std::string, std::string> all = {
        {"date", EXL3_DATE},
        {"time", EXL3_TIME},
        {"date-time", EXL3_DATE "T" EXL3_TIME},
        {"duration",
         "P([0-9]{1,6}W|([0-9]{1,6}Y)?([0-9]{1,6}M)?([0-9]{1,6}D"
         "|[0-9]{1,6}DT[0-9]{1,6}[HMS]|T[0-9]{1,6}H([0-9]{1,6}M)?([0-9]{1,6}S)?"
         "|T[0-9]{1,6}M([0-9]{1,6}S)?|T[0-9]{1,6}S))"},
        {"email",
         "[a-zA-Z0-9!#$%&'*+/=?^_`{}~-]{1,30}(\\.[a-zA-Z0-9!#$%&'*+/"
         "=?^_`{}~-]{1,30}){0,3}@" EXL3_HOST},
        {"hostname", EXL3_HOST},
        {"ipv4", EXL3_OCTET "(\\." EXL3_OCTET "){3}"},
        {"ipv6", "(" EXL3_H16 ":){7}" EXL3_H16 "|(" EXL3_H16 ":){1,6}:" EXL3_H16 "|::(" EXL3_H16
                 ":){0,5}" EXL3_H16 "|::"},
        {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
        {"uri",
         "[a-zA-Z][a-zA-Z0-9+.-]{1,20}://" EXL3_HOST
         "(:[0-9]{1,5})?(/[a-zA-Z0-9._~!$&'()*+,;=:@-]{0,60}){0,20}"
         "(\\?[a-zA-Z0-9._~!$&'()*+,;=:@/?-]{0,200})?(#[a-zA-Z0-9._~!$&'()*+,;=:@/?-]{0,200})?"},
    };
    return all;
}

}  // namespace

bool is_json_format(const std::string& format) {
    return formats().contains(format);
}

Rules::Expr json_format(Rules& rules, const std::string& format) {
    const auto it = formats().find(format);
    return it == formats().end() ? rules.never() : regex_expr(rules, it->second, {});
}

}  // namespace exl3
