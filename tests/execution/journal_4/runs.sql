BEGIN TRANSACTION;
CREATE TABLE anchor (
            seq INTEGER NOT NULL,
            chain BLOB NOT NULL,
            since INTEGER NOT NULL,
            below INTEGER NOT NULL,
            seal BLOB NOT NULL
        );
INSERT INTO "anchor" VALUES(0,X'0000000000000000000000000000000000000000000000000000000000000000',1,0,X'F493CF276A27E53567F7AF38C5E0E04E900073AE6AE7C583D4FAE5997A51792A');
CREATE TABLE audit (
            seq INTEGER PRIMARY KEY,
            at REAL NOT NULL,
            kind TEXT NOT NULL,
            ref INTEGER NOT NULL,
            link BLOB NOT NULL
        );
INSERT INTO "audit" VALUES(1,1700000000.25,'begin',1,X'FD57BA0E20456E2EE4D730C3C2111BD43B2E48EA88C7FD4A5471F0DDF3C43F965418E0AF5099F4DA9192DED701DE7873A9748FF7ECEADA361B9A65761FC767A9');
INSERT INTO "audit" VALUES(2,1700000000.75,'decision',4294967297,X'7E769E20A6A6F156B3D84F6D5F8F97334AA5179140530CC6BE8DBAC5757BCA023F32544E4F890A0A3592E790A977110DCB99E82B52ABD914EA0A0D85EC78BCDF');
INSERT INTO "audit" VALUES(3,1700000001.0,'reveal',4294967297,X'D2BCB46DDA4CD9156BF3DCEB654C3ED4FCA3058A824B300A16C39DF3C8930A29465310F37765AC79BE8064ED974C5BA5072FED5B5703B6C8B1E9D7400936A42B');
INSERT INTO "audit" VALUES(4,1700000001.25,'call',4294967297,X'E554352549BD2767310D8DC4F0E394748CB49EB8BA24838BFF1300ED315CCACB7E82C5A646EB42416DCBA33C68593DE06C9E30C6EFB3F796CF7F216643CAEA17');
INSERT INTO "audit" VALUES(5,1700000001.5,'end',1,X'F11DCCE030F26A3622B1BF6D5EED245B529563E5F51C851965330C791893E9964DA4A1CF9B2ABCD3EB373E207ACF06898B276FFA687926279B18306589820723');
INSERT INTO "audit" VALUES(6,1700000001.75,'begin',2,X'7397010934A98E6EC80077A263283457315D5CA9D1B9538DBBD530631555C77AEA84E42D5CBE3BFD9C3916F3C6A5297C8270C2C00355B66EE77D45C6A690F7B9');
CREATE TABLE beginnings (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            began_at REAL NOT NULL,
            client TEXT NOT NULL,
            request TEXT NOT NULL,
            project TEXT NOT NULL,
            process INTEGER NOT NULL,
            code TEXT NOT NULL,
            code_bytes INTEGER NOT NULL,
            code_sha256 TEXT
        , kind TEXT NOT NULL DEFAULT 'code', session TEXT NOT NULL DEFAULT '', generation TEXT NOT NULL DEFAULT '', resumes TEXT NOT NULL DEFAULT '');
INSERT INTO "beginnings" VALUES(1,'6553f1003fba2688',1700000000.25,'relay-1','7','/home/café',22148406566733347,'import crm',10,NULL,'code','','','');
INSERT INTO "beginnings" VALUES(2,'6553f1029b3ba9b2',1700000001.75,'relay-1','','',22148406566733347,'print(2)',8,NULL,'code','','','');
CREATE TABLE calls (
            id INTEGER PRIMARY KEY,
            tool TEXT NOT NULL,
            outcome TEXT NOT NULL,
            arguments TEXT NOT NULL,
            arguments_bytes INTEGER NOT NULL,
            arguments_sha256 TEXT,
            answer TEXT,
            answer_bytes INTEGER,
            answer_sha256 TEXT,
            error TEXT,
            started_at REAL NOT NULL,
            duration_s REAL NOT NULL
        );
INSERT INTO "calls" VALUES(4294967297,'crm.delete','ok','{"number":1}',12,NULL,'{"text":"ok"}',13,NULL,NULL,1700000001.25,3.695000032166717574e-06);
CREATE TABLE clocks (id INTEGER PRIMARY KEY, readings TEXT NOT NULL);
CREATE TABLE decisions (
            id INTEGER PRIMARY KEY,
            position INTEGER NOT NULL,
            tool TEXT NOT NULL,
            rule TEXT NOT NULL,
            action TEXT NOT NULL,
            decided_by TEXT NOT NULL,
            arguments_sha256 TEXT NOT NULL,
            at REAL NOT NULL
        );
INSERT INTO "decisions" VALUES(4294967297,1,'crm.delete','ask crm.delete*','approved','user','abababababababababababababababababababababababababababababababab',1700000000.75);
CREATE TABLE ends (
            number INTEGER PRIMARY KEY,
            ended_at REAL NOT NULL,
            failure TEXT,
            reply TEXT NOT NULL,
            reply_bytes INTEGER NOT NULL,
            reply_sha256 TEXT
        );
INSERT INTO "ends" VALUES(1,1700000001.5,NULL,'done',4,NULL);
CREATE TABLE intents (
            id INTEGER PRIMARY KEY,
            tool TEXT NOT NULL,
            arguments TEXT NOT NULL,
            arguments_sha256 TEXT
        );
CREATE TABLE listings (id TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE offers (
            number INTEGER PRIMARY KEY,
            listings TEXT NOT NULL,
            shown TEXT NOT NULL
        );
CREATE TABLE progress (
            number INTEGER PRIMARY KEY,
            done REAL NOT NULL,
            total REAL,
            note TEXT NOT NULL
        );
CREATE TABLE reveals (
            id INTEGER PRIMARY KEY,
            position INTEGER NOT NULL,
            upstream TEXT NOT NULL,
            kind TEXT NOT NULL,
            count INTEGER NOT NULL,
            at REAL NOT NULL
        );
INSERT INTO "reveals" VALUES(4294967297,1,'crm','EMAIL',2,1700000001.0);
CREATE TABLE tokens (
            id INTEGER NOT NULL,
            part TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            PRIMARY KEY (id, part)
        ) WITHOUT ROWID
        ;
CREATE TABLE wholes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE INDEX beginnings_by_origin ON beginnings (client, request);
CREATE INDEX beginnings_by_first ON beginnings (resumes) WHERE resumes <> '';
CREATE TRIGGER audit_begin AFTER INSERT ON beginnings BEGIN
            INSERT INTO audit (at, kind, ref, link) VALUES (
                NEW.began_at, 'begin', NEW.number,
                audit_begin((SELECT link FROM audit ORDER BY seq DESC LIMIT 1), NEW.number, NEW.id, NEW.began_at, NEW.client, NEW.request, NEW.project, NEW.process, NEW.code, NEW.code_bytes, NEW.code_sha256, NEW.kind, NEW.session, NEW.generation, NEW.resumes)
            );
        END;
CREATE TRIGGER audit_call AFTER INSERT ON calls BEGIN
            INSERT INTO audit (at, kind, ref, link) VALUES (
                NEW.started_at, 'call', NEW.id,
                audit_call((SELECT link FROM audit ORDER BY seq DESC LIMIT 1), NEW.id, NEW.tool, NEW.outcome, NEW.arguments, NEW.arguments_bytes, NEW.arguments_sha256, NEW.answer, NEW.answer_bytes, NEW.answer_sha256, NEW.error, NEW.started_at, NEW.duration_s)
            );
        END;
CREATE TRIGGER audit_end AFTER INSERT ON ends BEGIN
            INSERT INTO audit (at, kind, ref, link) VALUES (
                NEW.ended_at, 'end', NEW.number,
                audit_end((SELECT link FROM audit ORDER BY seq DESC LIMIT 1), NEW.number, NEW.ended_at, NEW.failure, NEW.reply, NEW.reply_bytes, NEW.reply_sha256)
            );
        END;
CREATE TRIGGER audit_decision AFTER INSERT ON decisions BEGIN
            INSERT INTO audit (at, kind, ref, link) VALUES (
                NEW.at, 'decision', NEW.id,
                audit_decision((SELECT link FROM audit ORDER BY seq DESC LIMIT 1), NEW.id, NEW.position, NEW.tool, NEW.rule, NEW.action, NEW.decided_by, NEW.arguments_sha256, NEW.at)
            );
        END;
CREATE TRIGGER audit_reveal AFTER INSERT ON reveals BEGIN
            INSERT INTO audit (at, kind, ref, link) VALUES (
                NEW.at, 'reveal', NEW.id,
                audit_reveal((SELECT link FROM audit ORDER BY seq DESC LIMIT 1), NEW.id, NEW.position, NEW.upstream, NEW.kind, NEW.count, NEW.at)
            );
        END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('beginnings',2);
COMMIT;
