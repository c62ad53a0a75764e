//! The built-in functions: names, numbers of arguments, families.
//!
//! One table. The implementations are in the evaluator, one file per family.

/// The family of a function; the evaluator has one file for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // each says what its functions are about
pub enum Family {
    TypeCheck,
    String,
    Array,
    Conditional,
    Math,
    DateTime,
    Spatial,
    Search,
    Item,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Its name as in the documentation; case-insensitive.
    pub name: &'static str,
    /// Minimum number of arguments.
    pub arguments_min: usize,
    /// Maximum number of arguments; `None` for any number.
    pub arguments_max: Option<usize>,
    /// Its kind.
    pub family: Family,
}

macro_rules! functions {
    ($($variant:ident = $name:literal, $min:literal, $max:expr, $family:ident;)*) => {
        /// A built-in function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // each is the SQL function of the same name
        pub enum Function {
            $($variant,)*
        }

        impl Function {
            /// All of them.
            pub const ALL: &[Function] = &[$(Function::$variant,)*];

            /// How it is called.
            pub fn signature(self) -> Signature {
                match self {
                    $(Function::$variant => Signature {
                        name: $name,
                        arguments_min: $min,
                        arguments_max: $max,
                        family: Family::$family,
                    },)*
                }
            }
        }
    };
}

functions! {
    IsArray = "IS_ARRAY", 1, Some(1), TypeCheck;
    IsBool = "IS_BOOL", 1, Some(1), TypeCheck;
    IsNull = "IS_NULL", 1, Some(1), TypeCheck;
    IsNumber = "IS_NUMBER", 1, Some(1), TypeCheck;
    IsObject = "IS_OBJECT", 1, Some(1), TypeCheck;
    IsString = "IS_STRING", 1, Some(1), TypeCheck;
    IsPrimitive = "IS_PRIMITIVE", 1, Some(1), TypeCheck;
    IsDefined = "IS_DEFINED", 1, Some(1), TypeCheck;
    IsFiniteNumber = "IS_FINITE_NUMBER", 1, Some(1), TypeCheck;
    IsInteger = "IS_INTEGER", 1, Some(1), TypeCheck;
    IsDateTime = "IS_DATETIME", 1, Some(1), TypeCheck;
    Concat = "CONCAT", 2, None, String;
    Contains = "CONTAINS", 2, Some(3), String;
    StartsWith = "STARTSWITH", 2, Some(3), String;
    EndsWith = "ENDSWITH", 2, Some(3), String;
    StringEquals = "StringEquals", 2, Some(3), String;
    IndexOf = "INDEX_OF", 2, Some(3), String;
    LastIndexOf = "LASTINDEXOF", 2, Some(3), String;
    Left = "LEFT", 2, Some(2), String;
    Right = "RIGHT", 2, Some(2), String;
    Substring = "SUBSTRING", 3, Some(3), String;
    Length = "LENGTH", 1, Some(1), String;
    Lower = "LOWER", 1, Some(1), String;
    Upper = "UPPER", 1, Some(1), String;
    Reverse = "REVERSE", 1, Some(1), String;
    Trim = "TRIM", 1, Some(2), String;
    LeftTrim = "LTRIM", 1, Some(2), String;
    RightTrim = "RTRIM", 1, Some(2), String;
    Replace = "REPLACE", 3, Some(3), String;
    Replicate = "REPLICATE", 2, Some(2), String;
    RegexMatch = "RegexMatch", 2, Some(3), String;
    RegexExtract = "RegexExtract", 2, Some(3), String;
    RegexExtractAll = "RegexExtractAll", 2, Some(3), String;
    StringJoin = "StringJoin", 2, Some(2), String;
    StringSplit = "StringSplit", 2, Some(2), String;
    SubstringBefore = "SubstringBefore", 2, Some(2), String;
    SubstringAfter = "SubstringAfter", 2, Some(2), String;
    LastSubstringBefore = "LastSubstringBefore", 2, Some(2), String;
    LastSubstringAfter = "LastSubstringAfter", 2, Some(2), String;
    ToString = "ToString", 1, Some(1), String;
    StringToNumber = "StringToNumber", 1, Some(1), String;
    StringToBoolean = "StringToBoolean", 1, Some(1), String;
    StringToNull = "StringToNull", 1, Some(1), String;
    StringToArray = "StringToArray", 1, Some(1), String;
    StringToObject = "StringToObject", 1, Some(1), String;
    ContainsAllCi = "CONTAINS_ALL_CI", 2, None, String;
    ContainsAllCs = "CONTAINS_ALL_CS", 2, None, String;
    ContainsAnyCi = "CONTAINS_ANY_CI", 2, None, String;
    ContainsAnyCs = "CONTAINS_ANY_CS", 2, None, String;
    ArrayConcat = "ARRAY_CONCAT", 2, None, Array;
    ArrayContains = "ARRAY_CONTAINS", 2, Some(3), Array;
    ArrayContainsAny = "ARRAY_CONTAINS_ANY", 2, None, Array;
    ArrayContainsAll = "ARRAY_CONTAINS_ALL", 2, None, Array;
    ArrayLength = "ARRAY_LENGTH", 1, Some(1), Array;
    ArraySlice = "ARRAY_SLICE", 2, Some(3), Array;
    SetIntersect = "SetIntersect", 2, Some(2), Array;
    SetUnion = "SetUnion", 2, Some(2), Array;
    SetDifference = "SetDifference", 2, Some(2), Array;
    SetEqual = "SetEqual", 2, Some(2), Array;
    Choose = "CHOOSE", 2, None, Array;
    ObjectToArray = "ObjectToArray", 1, Some(3), Array;
    ArrayMin = "ARRAY_MIN", 1, Some(1), Array;
    ArrayMax = "ARRAY_MAX", 1, Some(1), Array;
    ArraySum = "ARRAY_SUM", 1, Some(1), Array;
    ArrayAvg = "ARRAY_AVG", 1, Some(1), Array;
    ArrayMedian = "ARRAY_MEDIAN", 1, Some(1), Array;
    Iif = "IIF", 3, Some(3), Conditional;
    Abs = "ABS", 1, Some(1), Math;
    Acos = "ACOS", 1, Some(1), Math;
    Asin = "ASIN", 1, Some(1), Math;
    Atan = "ATAN", 1, Some(1), Math;
    Ceiling = "CEILING", 1, Some(1), Math;
    Cos = "COS", 1, Some(1), Math;
    Cot = "COT", 1, Some(1), Math;
    Degrees = "DEGREES", 1, Some(1), Math;
    Exp = "EXP", 1, Some(1), Math;
    Floor = "FLOOR", 1, Some(1), Math;
    Log10 = "LOG10", 1, Some(1), Math;
    Radians = "RADIANS", 1, Some(1), Math;
    Sign = "SIGN", 1, Some(1), Math;
    Sin = "SIN", 1, Some(1), Math;
    Sqrt = "SQRT", 1, Some(1), Math;
    Square = "SQUARE", 1, Some(1), Math;
    Tan = "TAN", 1, Some(1), Math;
    Trunc = "TRUNC", 1, Some(1), Math;
    Atn2 = "ATN2", 2, Some(2), Math;
    Log = "LOG", 1, Some(2), Math;
    Pi = "PI", 0, Some(0), Math;
    Power = "POWER", 2, Some(2), Math;
    Rand = "RAND", 0, Some(0), Math;
    Round = "ROUND", 1, Some(2), Math;
    NumberBin = "NumberBin", 1, Some(2), Math;
    IntAdd = "IntAdd", 2, Some(2), Math;
    IntSub = "IntSub", 2, Some(2), Math;
    IntMul = "IntMul", 2, Some(2), Math;
    IntDiv = "IntDiv", 2, Some(2), Math;
    IntMod = "IntMod", 2, Some(2), Math;
    IntBitAnd = "IntBitAnd", 2, Some(2), Math;
    IntBitOr = "IntBitOr", 2, Some(2), Math;
    IntBitXor = "IntBitXor", 2, Some(2), Math;
    IntBitLeftShift = "IntBitLeftShift", 2, Some(2), Math;
    IntBitRightShift = "IntBitRightShift", 2, Some(2), Math;
    IntBitNot = "IntBitNot", 1, Some(1), Math;
    DateTimeAdd = "DateTimeAdd", 3, Some(3), DateTime;
    DateTimeDiff = "DateTimeDiff", 3, Some(3), DateTime;
    DateTimePart = "DateTimePart", 2, Some(2), DateTime;
    DateTimeBin = "DateTimeBin", 2, Some(4), DateTime;
    DateTimeFromParts = "DateTimeFromParts", 3, Some(7), DateTime;
    DateTimeToTicks = "DateTimeToTicks", 1, Some(1), DateTime;
    DateTimeToTimestamp = "DateTimeToTimestamp", 1, Some(1), DateTime;
    TicksToDateTime = "TicksToDateTime", 1, Some(1), DateTime;
    TimestampToDateTime = "TimestampToDateTime", 1, Some(1), DateTime;
    GetCurrentDateTime = "GetCurrentDateTime", 0, Some(0), DateTime;
    GetCurrentTicks = "GetCurrentTicks", 0, Some(0), DateTime;
    GetCurrentTimestamp = "GetCurrentTimestamp", 0, Some(0), DateTime;
    GetCurrentDateTimeStatic = "GetCurrentDateTimeStatic", 0, Some(0), DateTime;
    GetCurrentTicksStatic = "GetCurrentTicksStatic", 0, Some(0), DateTime;
    GetCurrentTimestampStatic = "GetCurrentTimestampStatic", 0, Some(0), DateTime;
    DateTimeFormat = "DateTimeFormat", 2, Some(2), DateTime;
    Ago = "Ago", 2, Some(2), DateTime;
    Now = "Now", 0, Some(0), DateTime;
    Day = "DAY", 1, Some(1), DateTime;
    Month = "MONTH", 1, Some(1), DateTime;
    Year = "YEAR", 1, Some(1), DateTime;
    StDistance = "ST_DISTANCE", 2, Some(2), Spatial;
    StWithin = "ST_WITHIN", 2, Some(2), Spatial;
    StIntersects = "ST_INTERSECTS", 2, Some(2), Spatial;
    StArea = "ST_AREA", 1, Some(1), Spatial;
    StIsValid = "ST_ISVALID", 1, Some(1), Spatial;
    StIsValidDetailed = "ST_ISVALIDDETAILED", 1, Some(1), Spatial;
    VectorDistance = "VectorDistance", 2, Some(4), Search;
    FullTextContains = "FullTextContains", 2, Some(2), Search;
    FullTextContainsAll = "FullTextContainsAll", 2, None, Search;
    FullTextContainsAny = "FullTextContainsAny", 2, None, Search;
    FullTextScore = "FullTextScore", 2, None, Search;
    Rrf = "RRF", 2, None, Search;
    InternalVectorScore = "_VectorScore", 2, Some(4), Search;
    InternalFullTextScore = "_FullTextScore", 5, Some(5), Search;
    InternalRank = "_Rank", 3, Some(3), Search;
    InternalFullTextWordCount = "_FullTextWordCount", 1, Some(1), Search;
    DocumentId = "DOCUMENTID", 1, Some(1), Item;
}

/// Undocumented names that clients use in queries that resume after a row.
const ALIASES: [(&str, Function); 1] = [("IS_BOOLEAN", Function::IsBool)];

impl Function {
    /// The function of this name, case-insensitive.
    pub fn find(name: &str) -> Option<Function> {
        let named = |function: &Function| function.signature().name.eq_ignore_ascii_case(name);
        let alias = || ALIASES.into_iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        Function::ALL.iter().copied().find(named).or_else(|| Some(alias()?.1))
    }

    /// Whether its value depends on the time that is fixed for a query.
    pub fn depends_on_query_time(self) -> bool {
        matches!(
            self,
            Function::GetCurrentDateTimeStatic
                | Function::GetCurrentTicksStatic
                | Function::GetCurrentTimestampStatic
                | Function::Ago
                | Function::Now
        )
    }

    /// Whether it may return another value for the same arguments.
    pub fn is_volatile(self) -> bool {
        matches!(
            self,
            Function::Rand
                | Function::GetCurrentDateTime
                | Function::GetCurrentTicks
                | Function::GetCurrentTimestamp
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_found_in_any_case_and_stand_once() {
        let mut names = HashSet::new();
        for function in Function::ALL {
            let name = function.signature().name;
            assert!(names.insert(name.to_ascii_lowercase()), "{name}");
            assert_eq!(Function::find(&name.to_ascii_uppercase()), Some(*function));
        }
        assert_eq!(Function::find("NOSUCH"), None);
        assert_eq!(Function::find("is_boolean"), Some(Function::IsBool));
    }
}
